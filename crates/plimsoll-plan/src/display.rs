//! The Plan as a person reads it.
