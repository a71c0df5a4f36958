//! Reports on results.
//!
//! # Modules
//! - [`document`] is a report as data; [`terminal`], [`markdown`] and [`html::page`] render a report;
//! - builders of reports: [`run`] (with `client`, `mix`, [`events`], `hosts`, `stages`, [`simulation`],
//!   `standstill` and [`verification`]), [`series`] ([`curve`], [`find`], [`repeats`], [`profile`] and [`ab`]),
//!   [`compare`] and [`fit`];
//! - exports: [`csv`] and [`points`], [`parquet`], [`monitoring`] (OpenMetrics, InfluxDB, OTLP), [`disclosure`] (full
//!   disclosure reports, read and written, and descriptions of the system under test, `sut.toml`), [`filebench`]
//!   (Filebench's line), and [`fio_json`] (fio's JSON output);
//! - a run in progress: [`live`] (a line) and [`live_screen`];
//! - [`console`]: the terminal or file to which a program writes;
//! - shared lower modules: [`html::chart`], [`percentiles`], [`operation_table`], `text` (wrapping and colours),
//!   `format` (numbers and times).
//!
//! # Design
//! A report is built once and then rendered, so all formats show the same content. Numbers in a report are texts with
//! about three significant digits; exports have numbers in full precision.
//!
//! Comparisons are data ([`compare`]). All figures of a comparison are tested together, and the report, JSON and
//! conditions show the same statements. Foreign text is escaped where the text leaves the program: all
//! standard output goes through [`console`], and tables and excerpts escape earlier, for the width of their
//! columns.

pub mod ab;
pub mod compare;
pub mod console;
pub mod csv;
pub mod curve;
pub mod disclosure;
pub mod document;
pub mod events;
pub mod filebench;
pub mod find;
pub mod fio_json;
pub mod fit;
pub mod html;
pub mod live;
pub mod live_screen;
pub mod markdown;
pub mod monitoring;
pub mod operation_table;
pub mod parquet;
pub mod percentiles;
pub mod points;
pub mod profile;
pub mod repeats;
pub mod run;
pub mod series;
pub mod simulation;
pub mod suite;
pub mod suite_rules;
pub mod sweep;
pub mod terminal;
pub mod verification;

mod client;
mod confidence;
mod format;
mod hosts;
mod mix;
mod stages;
mod standstill;
mod text;

pub use format::{
    MIB, clock_note, duration_text, latency, local_time, mib_per_s, precise_percent, rate,
};
pub use text::{Paint, paragraph, reason_codes};
