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
#[cfg(feature = "profile")]
mod profile;
mod routes;
mod wire;

pub use api::{Api, router};
pub use from_json::{
    consumer_from_json, consumer_to_json, resource_from_json, subscription_from_json,
    subscription_to_json,
};
pub use openapi::openapi;
pub use problem::Problem;
