//! What revisions are and how they are read, as tables and properties.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

mod go_layouts;
mod layout_properties;
mod layout_rules;
mod revision_properties;
mod revision_rules;
