//! Full disclosure reports.
//!
//! [`import`] reads the ASCII reports that were published for SPECsfs2008, SPEC SFS 2014 and
//! SPECstorage 2020, and those that Plimsoll writes, into a [`Disclosure`]: who measured what,
//! the load points, the overall response time as published and as computed anew, and every
//! section's text.
//!
//! SPEC, SPECsfs and SPECstorage are trademarks of the Standard Performance Evaluation
//! Corporation. What Plimsoll measures is never a SPEC result.

mod import;
mod model;
mod summary;
pub mod sut;

pub use import::{Imported, MOST_BYTES, import};
pub use model::{Disclosure, LoadPoint, Section};
pub use sut::Sut;

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
