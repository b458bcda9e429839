//! The words in which slots change hands. The cluster says what is whose (`cluster/runner.rs`), lanes
//! work it (`pipeline/lanes`), and both speak of it in these terms alone.

mod change;
mod drain_limit;
mod slots;
mod term;
mod trust;

pub use change::SlotChange;
pub use drain_limit::DrainLimit;
pub use slots::Slots;
pub use term::Term;
pub use trust::Trust;
