//! Quoting of shell words in command lines that users copy.

/// Quotes a text as one word of a POSIX shell; a text without special characters stays unchanged.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Joins words to a command line of a POSIX shell; each word is quoted as [`shell_word`] quotes the word.
#[must_use]
pub fn shell_words(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|w| shell_word(w)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_another() {
        assert_eq!(shell_word("/mnt/a-b.1"), "/mnt/a-b.1");
        assert_eq!(shell_word("w/a b"), "'w/a b'");
        assert_eq!(shell_word("it's $x"), r"'it'\''s $x'");
        assert_eq!(shell_word(""), "''");
        let words = ["run", "--event=7s kill server.1", "a=b:c/d?e&f"].map(str::to_owned);
        assert_eq!(
            shell_words(&words),
            "run '--event=7s kill server.1' 'a=b:c/d?e&f'"
        );
    }
}
