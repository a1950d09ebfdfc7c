//! The program `tablesdk-server`: serves tables until a signal stops it, or maintains a data
//! directory.
//!
//! The server prints one line on standard output when it accepts connections, errors and the log on
//! standard error, and nothing else. The exit code is 0 after a signal to stop; 1 if it cannot
//! serve, could not complete all requests before it stopped, or got a second signal; and 2 if the
//! options are invalid.

mod program;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::program::options::Arguments;
use crate::program::{NAME, maintenance, serve};

// With the system's allocator, allocations were 15 % of the processor time of a point read and 46 %
// of that of a batch, and memory that was needed once stayed with the process. jemalloc takes less
// memory for the same entities, but needs `make` to be built, so it is not the default. The library
// leaves the choice to its program. Figures: `docs/performance.md`.
#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(all(feature = "mimalloc", not(all(unix, feature = "jemalloc"))))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Some(command) => maintenance::run(command),
        None => serve::run(&arguments.serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the error cannot be reported.
            let _ = writeln!(io::stderr(), "{NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}
