//! Sizes, times and size tables of workload files.

use plimsoll_plan::{
    SizeSlot, SizeTable, parse_duration, parse_size, show_duration, time_of_seconds,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A number of bytes: a whole number, or a text with a unit `k`, `m`, `g` or `t` (powers of 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size(pub u64);

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 4096 or \"64k\"")
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Size, E> {
        u64::try_from(n)
            .map(Size)
            .map_err(|_| E::custom(format!("a size must not be negative, is {n}")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        parse_size(text).map(Size).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(SizeVisitor)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match short(self.0) {
            Some(text) => s.serialize_str(&text),
            None => s.serialize_u64(self.0),
        }
    }
}

/// Formats a size with the largest unit that divides the size; `None` if no unit divides the size, and for 0.
fn short(n: u64) -> Option<String> {
    let units = [(40, 't'), (30, 'g'), (20, 'm'), (10, 'k')];
    let fits = |(shift, _): &&(u32, char)| n > 0 && n.is_multiple_of(1 << shift);
    let (shift, unit) = units.iter().find(fits)?;
    Some(format!("{}{unit}", n >> shift))
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Bytes: a whole number, or a text with k, m, g or t (powers of 1024).",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+[kKmMgGtT]?$" }
            ]
        })
    }
}

/// A time: a number of seconds, or a text with one of `us ms s m h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time(pub Duration);

struct TimeVisitor;

impl TimeVisitor {
    fn seconds<E: Error>(seconds: f64) -> Result<Time, E> {
        match seconds < 0.0 {
            true => Err(E::custom(format!(
                "a time must not be negative, is {seconds}"
            ))),
            false => time_of_seconds(seconds)
                .map(Time)
                .map_err(|e| E::custom(format!("{seconds} {e}"))),
        }
    }
}

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 300 or \"5m\"")
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Time, E> {
        Self::seconds(n as f64)
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Time, E> {
        Self::seconds(n)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        parse_duration(text).map(Time).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(TimeVisitor)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let text = show_duration(self.0);
        match parse_duration(&text) {
            Ok(time) if time == self.0 => s.serialize_str(&text),
            _ => s.serialize_f64(self.0.as_secs_f64()),
        }
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Seconds, or a text with us, ms, s, m or h.",
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9.]+ *(us|ms|s|m|min|h)?$" }
            ]
        })
    }
}

/// A table of sizes: one size, or slots of `{ size, percent }` or `{ min, max, percent }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sizes(pub SizeTable);

/// A slot of a size table: one size or a range of sizes, and the percentage of the draws from the slot.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Slot {
    /// Only size of the slot in bytes, instead of `min` and `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<Size>,
    /// Minimum size of the slot in bytes; requires `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<Size>,
    /// Maximum size of the slot in bytes; requires `min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Size>,
    /// Percentage of the drawn sizes that fall into the slot.
    percent: f64,
}

impl TryFrom<Slot> for SizeSlot {
    type Error = String;

    fn try_from(slot: Slot) -> Result<Self, String> {
        let (min, max) = match (slot.size, slot.min, slot.max) {
            (Some(size), None, None) => (size.0, size.0),
            (None, Some(min), Some(max)) => (min.0, max.0),
            _ => return Err("a slot has `size`, or both `min` and `max`".into()),
        };
        Ok(Self {
            min,
            max,
            percent: slot.percent,
        })
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a size such as \"64k\", or a table such as [{ size = \"64k\", percent = 100 }]",
        )
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Sizes, E> {
        SizeVisitor.visit_i64(n).map(Sizes::from)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Sizes, E> {
        SizeVisitor.visit_str(text).map(Sizes::from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sizes, A::Error> {
        let mut slots = Vec::new();
        while let Some(slot) = seq.next_element::<Slot>()? {
            slots.push(SizeSlot::try_from(slot).map_err(A::Error::custom)?);
        }
        let table = SizeTable(slots);
        let wrong = |e| A::Error::custom(format!("a table of sizes {e}"));
        table.check().map_err(wrong)?;
        Ok(Sizes(table))
    }
}

impl From<Size> for Sizes {
    fn from(size: Size) -> Self {
        Self(SizeTable::fixed(size.0))
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(SizesVisitor)
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let slots = &self.0.0;
        if let [slot] = slots.as_slice()
            && slot.min == slot.max
        {
            return Size(slot.min).serialize(s);
        }
        s.collect_seq(slots.iter().map(|slot| {
            let one = slot.min == slot.max;
            Slot {
                size: one.then_some(Size(slot.min)),
                min: (!one).then_some(Size(slot.min)),
                max: (!one).then_some(Size(slot.max)),
                percent: slot.percent,
            }
        }))
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        let slot = generator.subschema_for::<Slot>();
        json_schema!({
            "description": "One size, or 1 to 16 slots whose percentages sum to 100.",
            "anyOf": [
                size,
                { "type": "array", "items": slot, "minItems": 1, "maxItems": 16 }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        size: Size,
        time: Time,
        sizes: Sizes,
    }

    proptest! {
        #[test]
        fn values_survive_a_round_trip(
            size in 0u64..1 << 50, micros in 0u64..100_000_000_000,
            slots in prop::collection::vec((0u64..1 << 20, 0u64..1 << 20, 1.0f64..10.0), 1..16),
        ) {
            let sum: f64 = slots.iter().map(|s| s.2).sum();
            let slot = |(a, b, p): &(u64, u64, f64)| SizeSlot {
                min: *a.min(b), max: *a.max(b), percent: p / sum * 100.0,
            };
            let mut table: Vec<SizeSlot> = slots.iter().map(slot).collect();
            table.iter_mut().for_each(|s| s.percent = s.percent.min(100.0));
            let all = All {
                size: Size(size),
                time: Time(Duration::from_micros(micros)),
                sizes: Sizes(SizeTable(table)),
            };
            let text = toml::to_string(&all).unwrap();
            let back: All = toml::from_str(&text).unwrap();
            prop_assert_eq!(back.size, all.size);
            prop_assert_eq!(back.sizes, all.sizes);
            let off = back.time.0.abs_diff(all.time.0);
            prop_assert!(off <= Duration::from_micros(1), "{:?}", off);
        }
    }

    #[test]
    fn round_numbers_are_written_short() {
        let text = |n| serde_json::to_value(Size(n)).unwrap().to_string();
        let shown = [0, 1000, 1024, 65536, 1 << 30, 3 << 40].map(text);
        assert_eq!(
            shown,
            ["0", "1000", "\"1k\"", "\"64k\"", "\"1g\"", "\"3t\""]
        );
    }

    #[test]
    fn a_time_beyond_the_clock_is_refused() {
        let time = |text: &str| {
            let all = toml::from_str::<All>(&format!("size = 1\ntime = {text}\nsizes = 1"));
            all.map(|all| all.time.0)
                .map_err(|e| e.message().to_owned())
        };
        assert_eq!(time("1e9"), Ok(Duration::from_secs(1_000_000_000)));
        for (text, expected) in [
            (
                "2e10",
                "20000000000 is too long: expected at most 1000000000 seconds",
            ),
            (
                "18446744074",
                "18446744074 is too long: expected at most 1000000000 seconds",
            ),
            (
                "\"5124096h\"",
                "`5124096h` is too long: expected at most 1000000000 seconds",
            ),
            ("nan", "NaN is not a time: expected a number of at least 0"),
            ("-1", "a time must not be negative, is -1"),
        ] {
            assert_eq!(time(text), Err(expected.into()), "{text}");
        }
    }

    #[test]
    fn sizes_and_times_are_written_as_they_are_read() {
        let json =
            |sizes: &[SizeSlot]| serde_json::to_string(&Sizes(SizeTable(sizes.to_vec()))).unwrap();
        let slot = |min, max, percent| SizeSlot { min, max, percent };
        assert_eq!(json(&[slot(1024, 1024, 100.0)]), r#""1k""#);
        assert_eq!(
            json(&[slot(1, 3, 100.0)]),
            r#"[{"min":1,"max":3,"percent":100.0}]"#
        );
        assert_eq!(
            json(&[slot(5, 5, 40.0), slot(0, 2048, 60.0)]),
            r#"[{"size":5,"percent":40.0},{"min":0,"max":"2k","percent":60.0}]"#
        );
        let time = |nanos| serde_json::to_string(&Time(Duration::from_nanos(nanos))).unwrap();
        assert_eq!(time(10_000_000_000), r#""10s""#);
        assert_eq!(time(1_234_567_891), "1.234567891");
    }
}
