//! Takes what the build script found; gives which Flare this is. Never asks git at run time.

/// The commit this was built from, or `unknown`.
pub const COMMIT: &str = env!("FLARE_BUILD_COMMIT");

/// The day of that commit as `20240501`, or `unknown`.
pub const DATE: &str = env!("FLARE_BUILD_DATE");

/// `0.1.0+<commit>.<date>`: a semantic version with where it came from as build metadata.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "+",
    env!("FLARE_BUILD_COMMIT"),
    ".",
    env!("FLARE_BUILD_DATE")
);
