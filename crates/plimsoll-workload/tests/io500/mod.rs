//! IO500's configuration files and phases.

mod diagnostics;
mod files;
mod plans;
