//! Full disclosure reports.
//!
//! [`import`] reads the ASCII reports that were published for SPECsfs2008, SPEC SFS 2014 and
//! SPECstorage 2020, and those that Plimsoll writes, into a [`Disclosure`]: who measured what,
//! the load points, the overall response time as published and as computed anew, and every
//! section's text.
//!
//! [`DisclosureInput`] is what Plimsoll knows of a measured curve; it becomes a [`Disclosure`], and
//! [`Disclosure::to_text`] prints that in the same form. [`Sut`] is the file in which a person
//! describes the system under test.
//!
//! SPEC, SPECsfs and SPECstorage are trademarks of the Standard Performance Evaluation
//! Corporation. What Plimsoll measures is never a SPEC result.

mod import;
mod model;
mod summary;
pub mod sut;
mod write;

pub use import::{Imported, MAX_REPORT_BYTES, import};
pub use model::{Disclosure, LoadPoint, Section};
pub use sut::Sut;
pub use write::{DisclosureInput, MeasuredPoint, NotDisclosable, style};

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
