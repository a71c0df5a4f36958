//! Names of the files and directories of filesets.

/// Whether Plimsoll gives this name to an entry of a fileset: a number of at least eight digits, with letters `n`
/// around the number in some names of files.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    let text = |n: &&u8| **n == b'n';
    let (before, after) = (
        name.iter().take_while(text).count(),
        name.iter().rev().take_while(text).count(),
    );
    let number = name.get(before..name.len().saturating_sub(after));
    number.is_some_and(|n| n.len() >= 8 && n.iter().all(u8::is_ascii_digit))
}

/// Suffix of the name of the symbolic link to a file.
pub(crate) const LINK_SUFFIX: u8 = b'l';

/// Whether Plimsoll gives this name to a symbolic link, which a mix creates to read the link.
pub(crate) fn is_our_link(name: &[u8]) -> bool {
    name.strip_suffix(&[LINK_SUFFIX]).is_some_and(is_ours)
}

#[cfg(test)]
mod tests {
    use super::{is_our_link, is_ours};

    #[test]
    fn only_names_that_plimsoll_gives_are_ours() {
        for name in [
            "00000001",
            "123456789",
            "n00000001",
            "00000001nnn",
            "nnn00000042n",
        ] {
            assert!(is_ours(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "n",
            "nnnnnnnn",
            "0000001",
            "n0000001",
            "0000n0000",
            "00000001.txt",
            "a00000001",
            "x",
            "1n2345678",
        ] {
            assert!(!is_ours(name.as_bytes()), "{name}");
        }
        assert!(is_our_link(b"00000001l") && !is_ours(b"00000001l"));
        for name in ["00000001", "l", "0000001l", "x00000001l", "00000001ll"] {
            assert!(!is_our_link(name.as_bytes()), "{name}");
        }
    }
}
