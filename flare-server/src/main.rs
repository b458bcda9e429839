//! Takes arguments, environment and signals; gives the `flare` process and its exit code. All it
//! does is in the library of this crate.

use std::process::ExitCode;

/// Requests are made, sent and answered on different threads, which glibc's allocator pays for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    flare_server::run()
}
