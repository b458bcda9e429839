//! Takes what Flare knows; gives it as JSON has it, and the other way round. No rules: those are the
//! model's. What is written and read is what is described: one type for each.
//!
//! A setting of a subscription has one place in each direction: read and given to the model's builder in
//! `give`, and shown by `From`; both in `endpoint`, `delivery`, `data`, `signing` or `subscription`.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod consumer;
pub(crate) mod consumer_report;
pub(crate) mod data;
pub(crate) mod dead_letter;
pub(crate) mod deliveries;
pub(crate) mod delivery;
pub(crate) mod document;
pub(crate) mod endpoint;
pub(crate) mod entries;
pub(crate) mod extent;
pub(crate) mod filter;
pub(crate) mod job;
pub(crate) mod json;
pub(crate) mod mapping;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod passive;
pub(crate) mod pin;
pub(crate) mod problem;
#[cfg(feature = "profile")]
pub(crate) mod profile;
pub(crate) mod rates;
pub(crate) mod reject;
pub(crate) mod report;
pub(crate) mod resource;
pub(crate) mod revision;
pub(crate) mod signing;
pub(crate) mod span;
pub(crate) mod subscription;
pub(crate) mod unreadable;
pub(crate) mod whole;
pub(crate) mod word;

#[cfg(test)]
mod tests;
