//! Names of entries: positions in a directory as text.

/// Appends `/` and the name of an entry: its position in the directory, as at least eight decimal digits.
#[inline]
pub(super) fn push_name(position: u32, out: &mut Vec<u8>) {
    if position < 100_000_000 {
        let mut name = [b'/'; 9];
        name[1..].copy_from_slice(&eight_digits(position));
        out.extend_from_slice(&name);
    } else {
        push_long_name(position, out);
    }
}

#[cold]
fn push_long_name(position: u32, out: &mut Vec<u8>) {
    out.push(b'/');
    out.extend_from_slice(position.to_string().as_bytes());
}

/// Returns the eight decimal digits of a number below 10⁸. Every operation computes its path, so three steps split the
/// digits, with both halves in one word, instead of eight dependent divisions.
fn eight_digits(n: u32) -> [u8; 8] {
    debug_assert!(n < 100_000_000, "{n} has more than eight digits");
    let (high, low) = (u64::from(n / 10_000), u64::from(n % 10_000));
    let fours = high | low << 32;
    // x / 100 is x * 10486 >> 20 for x < 10 000, and x / 10 is x * 103 >> 10 for x < 100.
    let hundreds = (fours * 10_486) >> 20 & 0x7f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_positions_in_eight_digits_or_more() {
        let name = |n: u32| {
            let mut out = Vec::new();
            push_name(n, &mut out);
            String::from_utf8(out).unwrap()
        };
        let edges = [0, 1, 99_999_999, 100_000_000, u32::MAX];
        // The same arithmetic converts the upper and the lower four digits of a name, so every group of four digits is
        // tested in each half.
        let groups = (0..10_000).flat_map(|n| [n, n * 10_000, n * 10_001]);
        for n in edges.into_iter().chain(groups) {
            assert_eq!(name(n), format!("/{n:08}"));
        }
    }
}
