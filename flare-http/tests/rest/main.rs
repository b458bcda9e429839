//! Every route and every documented error over real HTTP. Each answer is compared with what the
//! OpenAPI document says of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod abuse;
mod audit;
mod auth;
mod cluster;
mod consumers;
mod documents;
mod examples;
mod faults;
mod filters;
mod log;
mod mappings;
mod mounting;
mod node;
mod openapi;
mod operations;
mod overview;
mod passive;
mod pins;
mod producers;
#[cfg(feature = "profile")]
mod profile;
mod pulling;
mod rejects;
mod resources;
mod schema;
mod subscriptions;
mod support;
mod unreadable;
