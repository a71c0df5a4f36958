//! Markdown for the pages of `docs reference`: escaped text, code and tables.

/// Escapes text so that Markdown displays the text unchanged on one line; text between backticks stays code.
pub fn inline(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Links of Rust doc comments, such as [`Plan`], become plain code, because reference pages lack their targets.
    let text = text.replace("[`", "`").replace("`]", "`");
    let is_paired = text.matches('`').count() % 2 == 0;
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        1 if is_paired => part.replace('|', "\\|"),
        _ => escaped(part),
    });
    parts
        .collect::<Vec<_>>()
        .join(if is_paired { "`" } else { "\\`" })
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '[' | ']' | '#' | '~' | '$' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// Formats text as inline code, also valid in a table cell.
pub fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') {
        return format!("`` {text} ``");
    }
    format!("`{text}`")
}

/// Formats a Markdown table followed by an empty line; a table without rows is an empty text, without a head.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = line(&head.map(String::from));
    let rule = line(&std::array::from_fn::<_, N, _>(|_| "---".to_owned()));
    let rows: String = rows.iter().map(|r| line(r)).collect();
    format!("{head}{rule}{rows}\n")
}

/// Formats text as a fenced code block, followed by an empty line.
pub fn block(text: &str) -> String {
    format!("```text\n{}\n```\n\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_unchanged() {
        assert_eq!(inline("a <b> | *c*\n d_e"), "a &lt;b&gt; \\| \\*c\\* d\\_e");
        assert_eq!(inline("`a<b|c>` & [`D`]"), "`a<b\\|c>` &amp; `D`");
        assert_eq!(inline("one ` only"), "one \\` only");
    }

    #[test]
    fn code_may_have_backticks_and_bars() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "`` a`b ``");
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        assert_eq!(table(["a", "b"], &[]), "");
        let rows = [["1".to_owned(), "2".to_owned()]];
        assert_eq!(
            table(["a", "b"], &rows),
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"
        );
    }
}
