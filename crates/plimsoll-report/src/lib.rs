//! Reports on results: formatted text, nothing here measures.
//!
//! # Modules
//! - a run: [`terminal`] (with [`stages`], [`standstill`], [`events`] and `mix`), [`markdown`], [`csv`], [`live`]
//!   (the line during the run), [`repeats`] (the line of repeated runs) and [`filebench`] (Filebench's line);
//! - a load curve or search: [`curve`], [`find`], and [`points`] (CSV and Markdown of both);
//! - a profile: [`profile`];
//! - comparisons: [`compare`];
//! - [`html`]: pages and charts; [`parquet`]: tables of results; [`disclosure`]: full disclosure reports, read and written,
//!   and descriptions of the system under test (`sut.toml`); [`live_screen`]: the screen of a run in progress;
//! - [`console`]: the terminal or file to which a program writes;
//! - below all of these: [`percentiles`], [`operation_table`], `annotations`, `table` and `text`
//!   (layout in columns), `format` (numbers and times).
//!
//! # Design
//! Comparisons are data ([`compare`]). All figures of a comparison are tested together, and text, Markdown, pages,
//! JSON and conditions show the same statements. Foreign text is escaped where the text leaves the program: all
//! standard output goes through [`console`], and tables and excerpts escape earlier, for the width of their
//! columns.

pub mod compare;
pub mod console;
pub mod csv;
pub mod curve;
pub mod disclosure;
pub mod events;
pub mod filebench;
pub mod find;
pub mod fit;
pub mod hosts;
pub mod html;
pub mod live;
pub mod live_screen;
pub mod markdown;
pub mod operation_table;
pub mod parquet;
pub mod percentiles;
pub mod points;
pub mod profile;
pub mod repeats;
pub mod simulation;
pub mod stages;
pub mod standstill;
pub mod terminal;
pub mod verification;

mod annotations;
mod format;
mod mix;
mod table;
mod text;

pub use annotations::annotations;
pub use format::{
    MIB, duration_text, inline, inline_latency, latency, measured_text, mib_per_s, rate,
};
pub use text::{Paint, paragraph};
