//! The words in which slots change hands. The cluster says what is whose (`cluster/runner.rs`), lanes and
//! consumers work it (`pipeline/lanes`, `pipeline/consumers`), and all of them speak of it in these terms alone.

mod change;
mod drain_limit;
mod slots;
mod term;
mod trust;

pub use change::{Released, SlotChange};
pub use drain_limit::DrainLimit;
pub(crate) use slots::SlotNumbers;
pub use slots::Slots;
pub use term::Term;
pub use trust::Trust;
