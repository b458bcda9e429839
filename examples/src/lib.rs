#![doc = include_str!("../../README.md")]

pub mod accounts;
pub mod client;
pub mod custom_queue;
pub mod custom_source;
pub mod pull_client;
pub mod verifier;
