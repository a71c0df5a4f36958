//! Template of a `sut.toml` for the user to complete.

use super::model::Sut;
use std::fmt::Write;
use toml::{Table, Value};

const HEAD: &str = "\
# The system under test, for disclosure reports.
#
# Fill in the empty values, correct the values that were found on this machine, copy a [[table]] for each
# further item, and delete tables without an item. An empty text is reported as not stated; a table
# without values is left out.
";

/// A `sut.toml` with an empty item in each list, so that the template shows the keys of every item.
const ONE_OF_EACH: &str = "\
materials = [{}]
diagrams = [{}]
software = [{}]
hardware_tuning = [{ parameters = [{}] }]
software_tuning = [{ parameters = [{}] }]
storage = [{}]
transport = [{}]
switches = [{}]
processors = [{}]
memory = [{}]
test_materials = [{}]
load_generators = [{}]
";

/// A `sut.toml` with every table and key, explained by comments, and with the values of `sut`.
#[must_use]
pub fn template(sut: &Sut) -> String {
    let tables = |sut: &Sut| Table::try_from(sut).expect("texts and numbers are TOML");
    let blank: Sut = toml::from_str(ONE_OF_EACH).expect("a description of the system");
    let schema = schemars::schema_for!(Sut);
    let mut page = Page {
        out: String::from(HEAD),
        meanings: SchemaDocs(schema.as_value()),
    };
    for ((name, value), (_, blank)) in tables(sut).iter().zip(&tables(&blank)) {
        match (value, blank) {
            (Value::Array(items), Value::Array(blank)) => {
                let items = if items.is_empty() { blank } else { items };
                for (i, item) in items.iter().enumerate() {
                    page.table(name, &format!("[[{name}]]"), item, i == 0);
                }
            }
            (table, _) => page.table(name, &format!("[{name}]"), table, true),
        }
    }
    page.out
}

/// Text of the file, to which tables are appended.
struct Page<'a> {
    out: String,
    meanings: SchemaDocs<'a>,
}

impl Page<'_> {
    /// Appends a table with a line for each key; the first table of a name has explanations.
    fn table(&mut self, name: &str, header: &str, table: &Value, first: bool) {
        self.out.push('\n');
        if first {
            let _ = writeln!(self.out, "# {}", self.meanings.of(&[name]));
        }
        let _ = writeln!(self.out, "{header}");
        for (key, value) in table.as_table().into_iter().flatten() {
            let meaning = self.meanings.of(&[name, key]).to_owned();
            let _ = match (value, first) {
                (Value::Array(items), _) => self.list(key, items, &meaning),
                (_, true) => writeln!(self.out, "{key} = {}  # {meaning}", inline(value)),
                (_, false) => writeln!(self.out, "{key} = {}", inline(value)),
            };
        }
    }

    /// Appends a list within a table, with a line for each item.
    fn list(&mut self, key: &str, items: &[Value], meaning: &str) -> std::fmt::Result {
        writeln!(self.out, "{key} = [  # {meaning}")?;
        for item in items {
            writeln!(self.out, "  {},", inline(item))?;
        }
        writeln!(self.out, "]")
    }
}

/// A value on one line.
fn inline(value: &Value) -> String {
    match value {
        // TOML strings have the escapes of JSON, and DEL must be escaped too.
        Value::String(text) => {
            let json = serde_json::Value::from(text.as_str()).to_string();
            json.replace('\u{7f}', "\\u007F")
        }
        Value::Table(table) => {
            let keys = table.iter().map(|(k, v)| format!("{k} = {}", inline(v)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The JSON schema of `sut.toml`, with the documentation of every field.
struct SchemaDocs<'a>(&'a serde_json::Value);

impl SchemaDocs<'_> {
    /// Documentation of the key at a path, without the full stop.
    fn of(&self, path: &[&str]) -> &str {
        let mut here = self.0;
        for name in path {
            here = &self.table(here)["properties"][name];
        }
        let meaning = here["description"].as_str().unwrap_or_default();
        meaning.trim_end_matches('.')
    }

    /// Schema of the table in a property, or of the items if the property is a list.
    fn table<'b>(&'b self, property: &'b serde_json::Value) -> &'b serde_json::Value {
        let item = property.get("items").unwrap_or(property);
        match item["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
            Some(pointer) => self.0.pointer(pointer).unwrap_or(item),
            None => item,
        }
    }
}
