//! Figures of a system file (times, sizes and rates) and their provenance.

use plimsoll_plan::{parse_duration, parse_size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Provenance of a figure of a system file: published, derived or assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Provenance {
    /// Published (P): a document or benchmark result states the figure.
    P,
    /// Derived (D): the figure follows from published figures by arithmetic.
    D,
    /// Assumed (A): the figure is a guess, which a fit may replace.
    A,
}

/// A figure: a value alone, or `{ value, source, free, note }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure<T> {
    /// Value of the figure in the unit of the type `T`: nanoseconds, bytes or bytes per second, or a plain number.
    pub value: T,
    /// Provenance of the figure; `None` if the system file states no provenance.
    pub source: Option<Provenance>,
    /// Minimum and maximum of a free figure, whose value a fit determines; `None` for a fixed figure.
    pub free: Option<(T, T)>,
}

/// Table form of a figure in a system file, with the figure's provenance and range.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Marked{T}")]
struct Marked<T> {
    /// Value of the figure, with its unit.
    value: T,
    /// Provenance of the figure: published (`P`), derived (`D`) or assumed (`A`).
    source: Option<Provenance>,
    /// Minimum and maximum of a free figure, whose value a fit determines; only for assumed figures. A figure without
    /// bounds is fixed.
    free: Option<(T, T)>,
    /// Remark on the figure for readers, such as the source; the simulation ignores remarks.
    #[serde(rename = "note")]
    _note: Option<String>,
}

impl<T: JsonSchema> JsonSchema for Figure<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Figure{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (plain, marked) = (
            generator.subschema_for::<T>(),
            generator.subschema_for::<Marked<T>>(),
        );
        json_schema!({
            "description": "A value alone, or with where it comes from.",
            "anyOf": [plain, marked]
        })
    }
}

impl<'de, T: Deserialize<'de> + Quantity> Deserialize<'de> for Figure<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(FigureVisitor(PhantomData))
    }
}

struct FigureVisitor<T>(PhantomData<T>);

impl<T> FigureVisitor<T> {
    fn plain<'de, E: Error>(value: impl IntoDeserializer<'de, E>) -> Result<Figure<T>, E>
    where
        T: Deserialize<'de>,
    {
        let value = T::deserialize(value.into_deserializer())?;
        Ok(Figure {
            value,
            source: None,
            free: None,
        })
    }
}

impl<'de, T: Deserialize<'de> + Quantity> Visitor<'de> for FigureVisitor<T> {
    type Value = Figure<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a figure, or a table such as { value = \"1ms\", source = \"A\", free = [\"0.5ms\", \"4ms\"] }")
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Figure<T>, E> {
        Self::plain(n)
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Figure<T>, E> {
        Self::plain(n)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Figure<T>, E> {
        Self::plain(text.to_owned())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Figure<T>, A::Error> {
        let marked = Marked::<T>::deserialize(MapAccessDeserializer::new(map))?;
        let free = marked.free;
        if free
            .as_ref()
            .is_some_and(|(low, high)| !(*low <= marked.value && marked.value <= *high))
        {
            return Err(A::Error::custom("the value must lie within `free`"));
        }
        if free.is_some() && marked.source.is_some_and(|s| s != Provenance::A) {
            return Err(A::Error::custom(
                "only an assumed figure (source = \"A\") may be free",
            ));
        }
        if free
            .as_ref()
            .is_some_and(|(low, high)| !(low.is_above_zero() && low < high))
        {
            return Err(A::Error::custom(
                "the bounds of a free figure must be above 0, and the first below the second",
            ));
        }
        Ok(Figure {
            value: marked.value,
            source: marked.source,
            free,
        })
    }
}

/// Quantity of a figure in a system file: a time, a size, a rate or a plain number.
pub(crate) trait Quantity: PartialOrd {
    fn is_above_zero(&self) -> bool;
}

impl Quantity for f64 {
    fn is_above_zero(&self) -> bool {
        *self > 0.0
    }
}

/// Defines the type of a quantity that is read from a TOML number or a text with a unit.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $pattern:literal, $parse:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Read;
                impl Visitor<'_> for Read {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        let parse: fn(&str) -> Result<f64, String> = $parse;
                        parse(text).map($name).map_err(E::custom)
                    }
                }
                d.deserialize_str(Read)
            }
        }

        impl Quantity for $name {
            fn is_above_zero(&self) -> bool {
                self.0 > 0.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": concat!("Expected: ", $expected, "."),
                    "type": "string",
                    "pattern": $pattern
                })
            }
        }
    };
}

quantity!(
    /// A time, in nanoseconds.
    Time,
    "a time such as \"140us\" or \"75ms\"",
    r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|min|h)?$",
    |text| parse_duration(text).map(|t| t.as_nanos() as f64)
);

quantity!(
    /// A size, in bytes.
    Size,
    "a size such as \"64k\" or \"80g\"",
    r"^[0-9]+(\.[0-9]+)?[kKmMgGtT]?$",
    fractional_size
);

quantity!(
    /// A rate, in bytes per second.
    Rate,
    "a rate such as \"457 MB/s\" or \"10 Gbit/s\"",
    r"^[0-9.]+ *([kMGT]B/s|[kMGT]bit/s)$",
    parse_rate
);

/// Parses a size in bytes that may have a fraction, as fitted sizes have.
pub(crate) fn fractional_size(text: &str) -> Result<f64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    match (number.contains('.'), number.parse::<f64>()) {
        (true, Ok(number)) => parse_size(&format!("1{unit}")).map(|unit| number * unit as f64),
        _ => parse_size(text).map(|bytes| bytes as f64),
    }
}

/// Units of rates, in bytes per second.
const RATE_UNITS: [(&str, f64); 8] = [
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
    ("kbit/s", 125.0),
    ("Mbit/s", 125e3),
    ("Gbit/s", 125e6),
    ("Tbit/s", 125e9),
];

pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let expected = || {
        format!(
            "`{text}` is not a rate: expected a number and a unit, as in \"457 MB/s\" or \"10 Gbit/s\""
        )
    };
    let (unit, factor) = RATE_UNITS
        .iter()
        .find(|(unit, _)| text.ends_with(unit))
        .filter(|_| text.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        .ok_or_else(expected)?;
    let number: f64 = text[..text.len() - unit.len()]
        .trim_end()
        .parse()
        .map_err(|_| expected())?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number * factor),
        false => Err(expected()),
    }
}
