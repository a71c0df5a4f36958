//! Reference pages of user-written files and of result files: keys and fields, from JSON schemas.

mod tables;

use super::Page;
use super::markdown::{code, table};
use crate::cli::SchemaForm;
use crate::commands::documents::schema_text;
use clap::ValueEnum;
use serde_json::Value;

/// Kind of document that has a JSON schema, with the texts of the document's reference page.
struct Document {
    form: SchemaForm,
    /// File name of the page without `.md`, such as `run` for `run.json`.
    name: &'static str,
    title: &'static str,
    /// Path of the chapter that explains the document, relative to the reference page.
    guide: &'static str,
}

const fn document(
    form: SchemaForm,
    name: &'static str,
    title: &'static str,
    guide: &'static str,
) -> Document {
    Document {
        form,
        name,
        title,
        guide,
    }
}

const FILES: [Document; 3] = [
    document(SchemaForm::Mix, "mix", "Operation mixes", "../../mix.md"),
    document(
        SchemaForm::System,
        "system",
        "System files",
        "../../systems.md",
    ),
    document(SchemaForm::Sut, "sut", "sut.toml", "../../disclosure.md"),
];

const RESULTS: [Document; 3] = [
    document(SchemaForm::Run, "run", "run.json", "../../results.md"),
    document(
        SchemaForm::Series,
        "series",
        "series.json",
        "../../results.md",
    ),
    document(
        SchemaForm::Disclosure,
        "disclosure",
        "Disclosure reports",
        "../../disclosure.md",
    ),
];

/// Reference pages of the TOML files that users write: operation mixes, systems, and `sut.toml`.
pub fn files() -> Page {
    overview("toml", "Keys of TOML files", &FILES)
}

/// Reference pages of the JSON files that results contain.
pub fn results() -> Page {
    overview("json", "Fields of results", &RESULTS)
}

/// Overview page of the reference on `documents`; each document has a subpage in the directory `dir`.
fn overview(dir: &str, title: &str, documents: &[Document]) -> Page {
    let rows = documents.iter().map(|d| {
        let name = d.form.to_possible_value().expect("every form has a name");
        let help = name.get_help().map(ToString::to_string).unwrap_or_default();
        let link = format!("[{}]({}.md)", d.title, d.name);
        let schema = code(&format!("plimsoll docs schema {}", name.get_name()));
        [link, super::markdown::inline(&help), schema]
    });
    let rows: Vec<_> = rows.collect();
    let text = format!(
        "# {title}\n\nEach document has a JSON schema, from which these pages are made.\n\n{}",
        table(["document", "contents", "schema"], &rows)
    );
    Page {
        parts: documents.iter().map(|d| page(dir, d)).collect(),
        ..Page::new(&format!("{dir}/index.md"), title, text)
    }
}

fn page(dir: &str, document: &Document) -> Page {
    let schema: Value =
        serde_json::from_str(&schema_text(document.form)).expect("a schema is JSON");
    let text = format!(
        "# {}\n\nThe [guide]({}) explains it.\n\n{}",
        document.title,
        document.guide,
        tables::of(&schema)
    );
    Page::new(&format!("{dir}/{}.md", document.name), document.title, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_has_a_page() {
        for form in SchemaForm::value_variants() {
            let pages = FILES.iter().chain(&RESULTS);
            assert_eq!(pages.filter(|d| d.form == *form).count(), 1, "{form:?}");
        }
    }
}
