//! A value of a system file with its position in the text.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::borrow::{Borrow, Cow};
use std::ops::Range;

/// A value with its byte range in the text: [`toml::Spanned`] with the JSON schema of the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Spanned<T>(toml::Spanned<T>);

impl<T> Spanned<T> {
    pub(crate) fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// Byte range of the value in the text of the system file.
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

impl Borrow<str> for Spanned<String> {
    fn borrow(&self) -> &str {
        self.0.get_ref()
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
