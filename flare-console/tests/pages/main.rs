//! The pages as a host gets them: where they are, who is let in, what is refused, and that nothing that somebody
//! else wrote is taken for HTML.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod access;
mod consumers;
mod forms;
mod log;
mod mounting;
mod support;
mod texts;
