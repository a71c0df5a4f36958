//! Test tables that are written as text, with one row per line.

/// Calls `check` with the input and the expectation of each row `input => expected`. The expectation of a long row is
/// on the next line, after `=> `. `\n` in an input is replaced by a line end; lines that begin with `//` are comments.
pub fn each_row(table: &str, check: impl Fn(&str, &str)) {
    let lines = table.lines().map(str::trim);
    let mut lines = lines.filter(|l| !l.is_empty() && !l.starts_with("//"));
    while let Some(line) = lines.next() {
        let (input, expected) = line.split_once(" => ").unwrap_or_else(|| {
            let next = lines.next().and_then(|l| l.strip_prefix("=> "));
            (line, next.expect("a row has an expectation"))
        });
        check(&input.replace("\\n", "\n"), expected);
    }
}

/// The left and right half of an input `left | right`; a missing half is an empty text.
pub fn halves(input: &str) -> (&str, &str) {
    let left = || Some((input.strip_suffix(" |")?, ""));
    let right = || Some(("", input.strip_prefix("| ")?));
    let both = input.split_once(" | ").or_else(left).or_else(right);
    both.expect("a bar between the halves")
}
