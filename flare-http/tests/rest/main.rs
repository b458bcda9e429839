//! Every route and every documented error over real HTTP. Each answer is compared with what the
//! OpenAPI document says of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod abuse;
mod auth;
mod cluster;
mod documents;
mod examples;
mod faults;
mod filters;
mod log;
mod mounting;
mod node;
mod openapi;
mod operations;
mod passive;
mod resources;
mod schema;
mod subscriptions;
mod support;
mod unreadable;
