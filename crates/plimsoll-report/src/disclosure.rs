//! Full disclosure reports.
//!
//! [`import`] reads the ASCII reports that were published for SPECsfs2008, SPEC SFS 2014 and
//! SPECstorage 2020, and those of Plimsoll, into a [`Disclosure`]: vendor and product, the load
//! points, the overall response time as published and as recomputed, and the text of each section.
//!
//! [`DisclosureInput`] is a measured curve, which is converted to a [`Disclosure`]; [`Disclosure::to_text`] prints a
//! report in the published form. [`Sut`] is the user's description of the system under test.
//!
//! SPEC, SPECsfs and SPECstorage are trademarks of the Standard Performance Evaluation
//! Corporation. Plimsoll's measurements are never SPEC results.
//!
//! # Modules
//! - `model`: [`Disclosure`], its load points and sections; `summary` prints a report on one screen;
//! - `import`: `flow` (the text without line breaks) → `head` (title and claim, with `number`),
//!   `sections` (found with the list of `forms`), `table` (the load points), `closing` (the end);
//! - [`sut`]: `model` (the tables of `sut.toml`), `parse`, `template` (a `sut.toml` with the findings of
//!   `machine`), `stated` (which texts are filled in);
//! - `write`: `curve` (from a load curve to [`DisclosureInput`]), `solution` and `measured` (the
//!   sections), `points` (the table of load points), `page` (the layout).

mod import;
mod model;
mod summary;
pub mod sut;
mod write;

pub use import::{Imported, MAX_REPORT_BYTES, import};
pub use model::{Disclosure, LoadPoint, Section};
pub use sut::Sut;
pub use write::{DisclosureInput, FormSection, MeasuredPoint, NotDisclosable, style, workload_of};
pub(crate) use write::{Part, has_suite_rules};

/// The JSON schema of a [`Disclosure`], pretty-printed.
#[must_use]
pub fn disclosure_schema() -> String {
    pretty(&schemars::schema_for!(Disclosure))
}

/// The JSON schema of a `sut.toml`, pretty-printed.
#[must_use]
pub fn sut_schema() -> String {
    pretty(&schemars::schema_for!(Sut))
}

fn pretty(schema: &schemars::Schema) -> String {
    serde_json::to_string_pretty(schema.as_value()).expect("a JSON value always prints") + "\n"
}
