//! What things are: values with their rules. No I/O, no clock, no log.

mod invalid;

pub use invalid::Invalid;
