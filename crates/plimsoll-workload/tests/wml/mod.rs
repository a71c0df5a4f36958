//! Tests of `plimsoll_workload::wml`.

mod attributes;
mod checks;
mod common;
mod diagnostics;
mod dialects;
mod filesets;
mod flowops;
mod library;
mod limits;
mod load;
mod properties;
mod rows;
mod script;
mod settings;
mod supplies;
mod syntax;
mod values;
mod variables;
