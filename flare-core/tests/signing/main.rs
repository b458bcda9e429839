//! Signed notifications, checked by the library that receivers use.

#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is a test")]

#[cfg(feature = "signing")]
mod leak;
#[cfg(feature = "signing")]
mod logged;
#[cfg(all(feature = "signing", feature = "http"))]
mod over_http;
#[cfg(feature = "signing")]
mod recorded;
#[cfg(not(feature = "signing"))]
mod refused;
#[cfg(feature = "signing")]
mod secrecy;
#[cfg(feature = "signing")]
mod verify;
mod world;
