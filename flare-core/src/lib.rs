//! Flare's core (scaffold).

pub mod model;
