//! Dependable delivery as a host and its clients see it: whole Flares on memory and simulated time,
//! days of it; and, where a limit has to hold on the wire, real HTTP.

mod content;
mod down;
#[cfg(feature = "http")]
mod gauge;
mod holds;
mod isolation;
mod lanes;
mod probing;
mod sim;
mod states;
mod status;
mod ttl;
#[cfg(feature = "http")]
mod wire;
