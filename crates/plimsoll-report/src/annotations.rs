//! Tags and notes of results.

use plimsoll_diagnostics::foreign;
use plimsoll_results::Annotations;

/// Lines with the tags and the note; nothing if there are none.
#[must_use]
pub fn annotations(a: &Annotations) -> String {
    let mut out = String::new();
    if !a.tags.is_empty() {
        out.push_str(&format!("tags: {}\n", a.tag_list()));
    }
    for (i, line) in a.note.lines().enumerate() {
        let head = if i == 0 { "note: " } else { "      " };
        out.push_str(&format!("{head}{}\n", foreign::escaped_lines(line)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_set_in_and_cannot_steer_the_terminal() {
        let mut a = Annotations::default();
        assert_eq!(annotations(&a), "");
        a.tags = ["y", "x"].map(|t| t.parse().unwrap()).into();
        a.note = "one\ntwo \u{1b}[2Jthree".into();
        assert_eq!(
            annotations(&a),
            "tags: x, y\nnote: one\n      two \\u001b[2Jthree\n"
        );
    }
}
