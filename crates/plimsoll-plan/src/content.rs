//! Kinds of written content, and their form on a command line.

use crate::units::parse_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Kind of the bytes that a workload writes, which storage with compression or deduplication treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Random bytes that follow from the Plan's seed: not compressible, and without duplicates within 8 MiB.
    #[default]
    Random,
    /// Content of zero bytes only, which storage may compress, deduplicate or not store at all.
    Zero,
    /// Compressible bytes: of every 512 bytes, a fraction of 1 / `ratio` is random, and all other bytes are zero.
    Compressible {
        /// Compression ratio: size of the data divided by the size after an ideal compressor; at least 1.
        ratio: f64,
    },
    /// Data in blocks: a part of each block is compressible, and a part of the blocks are copies of other blocks.
    Blocks {
        /// Percentage of each block that an ideal compressor removes, 0 to 100.
        compressible_percent: f64,
        /// Percentage of the blocks that are copies of one of `groups` blocks, 0 to 100; all other blocks are unique.
        dedupable_percent: f64,
        /// Block size in bytes: a power of two from 512 to 65 536.
        block: u64,
        /// Number of different blocks among the dedupable blocks, 1 to 64.
        groups: u32,
    },
}

/// Maximum number of different blocks that dedupable blocks of [`Content::Blocks`] repeat.
pub const DEDUPED_BLOCKS: u64 = 64;

/// Block size in bytes of a content that the command line describes without `block`.
const BLOCK: u64 = 4096;
/// Number of different dedupable blocks of a content that the command line describes without `groups`.
const GROUPS: u32 = 64;

/// Value of `compressible` on the command line: a compression ratio, or the percentage of each block that an ideal
/// compressor removes.
#[derive(Debug, Clone, Copy)]
enum Compressible {
    /// Uncompressed size divided by compressed size.
    Ratio(f64),
    Percent(f64),
}

impl Compressible {
    fn percent(self) -> f64 {
        match self {
            Self::Percent(percent) => percent,
            Self::Ratio(ratio) => 100.0 * (1.0 - 1.0 / ratio),
        }
    }
}

/// Parts of a content on the command line; `None` for a part that is not given.
#[derive(Default)]
struct ContentParts {
    compressible: Option<Compressible>,
    duplicate: Option<f64>,
    block: Option<u64>,
    groups: Option<u32>,
}

impl ContentParts {
    fn take(&mut self, part: &str) -> Result<(), String> {
        let Some((key, value)) = part.split_once(':') else {
            return Err(match part {
                "random" | "zero" => format!("`{part}` stands alone"),
                _ => expected(part),
            });
        };
        let twice = match key {
            "compressible" => self.compressible.replace(compressible(value)?).is_some(),
            "duplicate" | "dedupable" => {
                let value = value.strip_suffix('%').unwrap_or(value);
                self.duplicate.replace(percent(key, value)?).is_some()
            }
            "block" => self.block.replace(block(value)?).is_some(),
            "groups" => self.groups.replace(groups(value)?).is_some(),
            _ => return Err(expected(part)),
        };
        match twice {
            true => Err(format!("`{key}` is given twice")),
            false => Ok(()),
        }
    }

    fn content(&self) -> Result<Content, String> {
        match (self.compressible, self.duplicate) {
            (None, None) => {
                Err("`block` and `groups` need `compressible` or `duplicate` beside them".into())
            }
            (Some(Compressible::Ratio(ratio)), None)
                if self.block.is_none() && self.groups.is_none() =>
            {
                Ok(Content::Compressible { ratio })
            }
            (compressible, duplicate) => Ok(Content::Blocks {
                compressible_percent: compressible.map_or(0.0, Compressible::percent),
                dedupable_percent: duplicate.unwrap_or(0.0),
                block: self.block.unwrap_or(BLOCK),
                groups: self.groups.unwrap_or(GROUPS),
            }),
        }
    }
}

fn expected(found: &str) -> String {
    format!(
        "expected random, zero, or one or more of compressible:RATIO (or compressible:PERCENT%), \
         duplicate:PERCENT, block:SIZE and groups:N, separated by commas, not `{found}`"
    )
}

fn compressible(value: &str) -> Result<Compressible, String> {
    if let Some(value) = value.strip_suffix('%') {
        return percent("compressible", value).map(Compressible::Percent);
    }
    match value.parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio >= 1.0 => Ok(Compressible::Ratio(ratio)),
        _ => Err(format!(
            "the ratio of `compressible` must be a number of at least 1, is `{value}`"
        )),
    }
}

fn percent(key: &str, value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("`{key}` must be 0 to 100 percent, is `{value}`")),
    }
}

fn block(value: &str) -> Result<u64, String> {
    let block = parse_size(value).ok().filter(|block| is_block(*block));
    block.ok_or_else(|| format!("`block` must be a power of two from 512 to 64k, is `{value}`"))
}

/// Whether blocks of [`Content::Blocks`] may have a size of `bytes` bytes: a power of two from 512 to 65 536.
#[must_use]
pub fn is_block(bytes: u64) -> bool {
    bytes.is_power_of_two() && (512..=64 << 10).contains(&bytes)
}

fn groups(value: &str) -> Result<u32, String> {
    let groups: Option<u32> = value.parse().ok();
    groups
        .filter(|groups| (1..=DEDUPED_BLOCKS).contains(&u64::from(*groups)))
        .ok_or_else(|| format!("`groups` must be 1 to {DEDUPED_BLOCKS}, is `{value}`"))
}

impl FromStr for Content {
    type Err = String;

    /// Parses `random`, `zero`, or parts with commas between them: `compressible:2.5`,
    /// `compressible:60%`, `duplicate:30`, `block:8k` and `groups:16`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "random" => return Ok(Self::Random),
            "zero" => return Ok(Self::Zero),
            _ => {}
        }
        let mut given = ContentParts::default();
        for part in text.split(',') {
            given.take(part.trim())?;
        }
        given.content()
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Zero => f.write_str("zero"),
            Self::Compressible { ratio } => write!(f, "compressible:{ratio}"),
            Self::Blocks {
                compressible_percent,
                dedupable_percent,
                block,
                groups,
            } => write!(
                f,
                "compressible:{compressible_percent}%,duplicate:{dedupable_percent}%,block:{block},\
                 groups:{groups}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Content {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn blocks(
        compressible_percent: f64,
        dedupable_percent: f64,
        block: u64,
        groups: u32,
    ) -> Content {
        Content::Blocks {
            compressible_percent,
            dedupable_percent,
            block,
            groups,
        }
    }

    #[test]
    fn kinds_are_named_and_parts_are_joined() {
        assert_eq!(read("random"), Content::Random);
        assert_eq!(read("zero"), Content::Zero);
        assert_eq!(
            read("compressible:2.5"),
            Content::Compressible { ratio: 2.5 }
        );
        assert_eq!(read("compressible:60%"), blocks(60.0, 0.0, 4096, 64));
        assert_eq!(read("duplicate:30"), blocks(0.0, 30.0, 4096, 64));
        assert_eq!(read("dedupable:30%"), blocks(0.0, 30.0, 4096, 64));
        assert_eq!(
            read("compressible:4, duplicate:12.5%,block:8k,groups:1"),
            blocks(75.0, 12.5, 8192, 1)
        );
        assert_eq!(read("compressible:2,block:512"), blocks(50.0, 0.0, 512, 64));
        assert_eq!(read("compressible:2,groups:3"), blocks(50.0, 0.0, 4096, 3));
        assert_eq!(read("compressible:1"), Content::Compressible { ratio: 1.0 });
        assert_eq!(
            read("compressible:100%,duplicate:100,block:64k,groups:64"),
            blocks(100.0, 100.0, 65_536, 64)
        );
    }

    #[test]
    fn what_is_wrong_is_said_of_its_part() {
        for (text, said) in [
            ("", "not ``"),
            ("zeros", "not `zeros`"),
            ("zero:1", "not `zero:1`"),
            ("random,duplicate:3", "`random` stands alone"),
            ("compressible:0.5", "at least 1, is `0.5`"),
            ("compressible:x", "at least 1, is `x`"),
            ("compressible:inf", "at least 1, is `inf`"),
            ("compressible:101%", "0 to 100 percent, is `101`"),
            (
                "duplicate:-1",
                "`duplicate` must be 0 to 100 percent, is `-1`",
            ),
            ("duplicate:nan", "is `nan`"),
            ("duplicate:3,dedupable:4", "`dedupable` is given twice"),
            (
                "compressible:2,compressible:3%",
                "`compressible` is given twice",
            ),
            ("duplicate:3,block:4k,block:8k", "`block` is given twice"),
            ("groups:1,groups:1", "`groups` is given twice"),
            ("zero,duplicate:3", "`zero` stands alone"),
            ("duplicate:3,block:256", "is `256`"),
            (
                "duplicate:3,block:3k",
                "a power of two from 512 to 64k, is `3k`",
            ),
            ("duplicate:3,block:128k", "is `128k`"),
            ("duplicate:3,groups:65", "1 to 64, is `65`"),
            ("duplicate:3,groups:0", "is `0`"),
            ("block:4k,groups:3", "`compressible` or `duplicate`"),
            ("duplicate:3,,block:4k", "not ``"),
        ] {
            let found = text.parse::<Content>().unwrap_err();
            assert!(found.contains(said), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read(
            compressible in 0.0f64..=100.0, duplicate in 0.0f64..=100.0,
            shift in 9u32..=16, groups in 1u32..=64, ratio in 1.0f64..1e6,
        ) {
            for content in [
                blocks(compressible, duplicate, 1 << shift, groups),
                Content::Compressible { ratio },
                Content::Random,
                Content::Zero,
            ] {
                prop_assert_eq!(read(&content.to_string()), content);
            }
        }

        #[test]
        fn any_text_is_a_content_or_an_error(text: String) {
            if let Err(said) = text.parse::<Content>() {
                prop_assert!(!said.is_empty());
            }
        }
    }
}
