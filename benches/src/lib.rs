//! What the benches and the checked claims share: a small world of documents, and how to measure.

pub mod measure;
pub mod world;
