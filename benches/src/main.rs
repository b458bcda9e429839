//! What Flare costs, from the command line. Each command has a module of its own.
//!
//! `cargo run --release -p flare-benches -- ground`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this is for")]

mod backfill;
mod bloat;
mod cluster;
mod e2e;
mod ground;
mod idle;
mod mongo;
mod number;
mod soak;
mod sources;
mod sqs;

use std::process::ExitCode;

/// Requests are made and answered on different threads, and so is their memory taken and freed,
/// which some systems' own allocators do at several times the cost. Both sides of every comparison
/// use the same one.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Anything may fail here, and all that can be done about it is to say so.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

const USAGE: &str = "\
usage: flare-benches ground [--documents N] [--rounds N] [--json]
       flare-benches e2e [--store NAME] [--subscriptions N] [--documents N] [--changes N] [--putters N]
                         [--hang N] [--fail N] [--filter] [--filter-values] [--signing] [--batch N] [--rate N]
                         [--rest] [--pairs N] [--json]
       flare-benches backfill [--documents N]
       flare-benches bloat [--deliveries N]
       flare-benches soak [--seconds N]
       flare-benches idle [--subscriptions N] [--seconds N]
       flare-benches mongo [--rows N] [--rounds N] [--json]
       flare-benches cluster [--slots N] [--nodes N] [--rounds N]
       flare-benches sqs [--rounds N] [--seconds N] [--json]
       flare-benches sources [--rounds N] [--json]
       flare-benches attack [--short] [NAME...]

  ground   check the claims about cost: ratios within this run, bytes per document and row, a status
           --documents N   documents and rows in the large stores (1000000)
           --rounds N      rounds of each comparison, at least 9 (21)
           --json          print the figures as one JSON object on the last line

  e2e      put documents and deliver them over HTTP, next to the same requests without Flare; then how long a
           delivery takes at 20 % of that load, and what a document and a row take on disk
           --store NAME        memory, sqlite (a file of its own), mongodb or postgresql (the server at
                               FLARE_TEST_MONGODB_URI, FLARE_TEST_POSTGRESQL_URI) (memory)
           --subscriptions N   clients, each told of every document (10)
           --documents N       documents in the store (as many as change); with more than change everything
                               is done a second time without the others, in turns
           --changes N         documents that change in a round (20000 deliveries' worth, on mongodb 5000)
           --putters N         puts under way at a time (4, or 32 where each waits for a disk)
           --hang N            clients that never answer; the others alone are counted (0)
           --fail N            clients that answer 500 at once; not counted either (0)
           --filter            give each client a filter that wants every document, and beside each put 99 clients
                               whose filters, each another, want none
           --filter-values     the same with filters that compare numbers and look in lists instead of texts
           --signing           sign every request
           --rate N            allow each client N requests a second (any number)
           --batch N           beside it, clients that take N notifications in a request
           --rest              put through the REST interface instead of the handle
           --pairs N           rounds of each side (11, or 31 with --hang or --fail)
           --json              print the figures as one JSON object on the last line

  backfill give a new client all documents of a SQLite file: does memory stay bounded?
           --documents N   how many (1000000)

  bloat    what tables and indexes on PostgreSQL take after many deliveries, in terms of what they take when they
           are rewritten; the server is at FLARE_TEST_POSTGRESQL_URI and has autovacuum on
           --deliveries N   how many: ten versions, or more, of 20000 documents at most, to ten clients (2000000)

  soak     have one document change constantly while a client is down, and large ones of which slow clients
           are told: does memory stay flat?
           --seconds N   how long (300)

  idle     what subscriptions cost that are paused
           --subscriptions N   how many (10000)
           --seconds N         how long to look, with and without (400)

  mongo    what the repository on MongoDB does a second, as a share of the server's bare bulkWrite updates,
           and how long counting a lag of 1,000 takes; the server is at FLARE_TEST_MONGODB_URI
           --rows N     rows among which the lag is counted (1000000)
           --rounds N   rounds of each comparison (15)
           --json       print the figures as one JSON object on the last line

  cluster  how long a leader takes to decide which node works which slot
           --slots N    slots to share out (16384)
           --nodes N    nodes to share them among (100)
           --rounds N   rounds of each case (21)

  sqs      what Flare with its queue on SQS delivers a second, as a share of the messages that the same
           server moves bare, what a delivery costs in requests, and what many idle lanes cost; the
           server is at FLARE_TEST_SQS_ENDPOINT
           --rounds N    rounds of each comparison (5)
           --seconds N   how long to look at idle lanes (60)
           --json        print the figures of the comparisons as one JSON object

  sources  what Flare pulls a second from SQS and RabbitMQ and stores, as a share of what a bare client takes
           from the same broker; they are at FLARE_TEST_SQS_ENDPOINT and FLARE_TEST_RABBITMQ_URI
           --rounds N   rounds of each comparison (5)
           --json       print the figures as one JSON object on the last line

  attack   make the runs that once broke Flare, or those named, and show what they come to now
           --short   as the tests make them

exits with 0 if every claim holds, 1 if one does not, 2 if it could not be measured";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let holds = match args.split_first() {
        Some((&"ground", rest)) => ground::run(rest),
        // For `ground` itself, which measures memory in processes of their own.
        Some((&ground::WEIGH, rest)) => ground::weigh(rest).map(|()| true),
        Some((&"e2e", rest)) => e2e::run(rest),
        // For `e2e` itself, whose clients are a process of their own.
        Some((&e2e::SINK, rest)) => e2e::serve(rest).map(|()| true),
        Some((&"backfill", rest)) => backfill::run(rest),
        Some((&"bloat", rest)) => bloat::run(rest),
        Some((&"soak", rest)) => soak::run(rest),
        Some((&"idle", rest)) => idle::run(rest),
        Some((&"mongo", rest)) => mongo::run(rest),
        Some((&"cluster", rest)) => cluster::run(rest),
        Some((&"sqs", rest)) => sqs::run(rest),
        Some((&"sources", rest)) => sources::run(rest),
        Some((&"attack", rest)) => flare_benches::attack::attack(rest),
        // For `sqs` itself, which weighs lanes in processes of their own.
        Some((&sqs::LANES, rest)) => sqs::weigh(rest).map(|()| true),
        Some((&("help" | "--help" | "-h"), _)) => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => Err(USAGE.into()),
    };
    match holds {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
