//! Reference page of Filebench's language: flowops, and attributes of statements.

use super::Page;
use super::markdown::{code, inline, table};
use plimsoll_workload::wml::{FLOWOPS, STATEMENTS};

fn codes(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|n| code(n)).collect();
    names.join(", ")
}

/// Tables of flowops and of the attributes of every statement.
pub fn page() -> Page {
    let rows = FLOWOPS.iter().map(|f| {
        let attributes = codes(&f.attributes().collect::<Vec<_>>());
        [code(f.name), inline(f.meaning), attributes]
    });
    let rows: Vec<_> = rows.collect();
    let mut text = format!(
        "# Flowops and attributes\n\nWhat they mean together is in [the description of the language](../wml.md).\n\n\
         ## Flowops\n\nEvery flowop takes `name` and `iters` too.\n\n{}",
        table(["flowop", "does", "attributes"], &rows)
    );
    for (statement, attributes) in STATEMENTS {
        let rows = attributes.iter().map(|a| {
            let value = inline(a.value());
            [codes(a.names), value, inline(&a.meaning())]
        });
        let rows: Vec<_> = rows.collect();
        text.push_str(&format!("## Attributes of `{}`\n\n", statement));
        text.push_str(&table(["attribute", "value", "meaning"], &rows));
    }
    Page::new("flowops.md", "Flowops and attributes", text)
}
