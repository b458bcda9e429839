#![doc = include_str!("../README.md")]

mod app;
pub mod cluster;
mod error;
pub mod filter;
#[cfg(feature = "http")]
pub mod http;
pub mod model;
pub mod observe;
mod ownership;
pub mod pipeline;
pub mod port;
pub mod prelude;
mod tools;
pub mod upkeep;

#[doc(hidden)]
pub use app::Script;
pub use app::{Backend, Flare, FlareBuilder, Left, NodeReport, Pull, Runtime, RuntimeHandle};
pub use error::{Error, ErrorKind, Result, Retry};
