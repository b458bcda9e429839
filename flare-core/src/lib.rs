#![doc = include_str!("../README.md")]

mod error;
pub mod model;
pub mod pipeline;
pub mod port;

pub use error::{Error, ErrorKind, Result, Retry};
