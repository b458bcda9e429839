//! Takes what Flare knows; gives it as JSON has it, and the other way round. No rules: those are the
//! model's. Where the model writes JSON itself, the types here only describe it.

pub(crate) mod cluster;
pub(crate) mod dead_letter;
pub(crate) mod delivery;
pub(crate) mod document;
pub(crate) mod node;
pub(crate) mod object;
pub(crate) mod operation;
pub(crate) mod page;
pub(crate) mod problem;
pub(crate) mod resource;
pub(crate) mod subscription;
pub(crate) mod unreadable;
