//! How one change travels, in travel order. So far: what its stages say to each other.

mod task;

pub use task::{DocumentVersion, Task};
