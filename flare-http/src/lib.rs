#![doc = include_str!("../README.md")]

mod api;
pub mod auth;
mod extract;
mod layer;
pub mod observe;
mod openapi;
mod options;
mod problem;
mod routes;
mod wire;

pub use api::{Api, router};
pub use openapi::openapi;
pub use problem::Problem;
