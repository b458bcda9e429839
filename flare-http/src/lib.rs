#![doc = include_str!("../README.md")]

mod api;
pub mod auth;
mod extract;
mod from_json;
mod layer;
pub mod observe;
mod openapi;
mod options;
mod problem;
mod routes;
mod wire;

pub use api::{Api, router};
pub use from_json::{resource_from_json, subscription_from_json};
pub use openapi::openapi;
pub use problem::Problem;
