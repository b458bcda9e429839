//! Takes a number of slots and nodes; tells how long the leader of a cluster needs to decide who
//! works what, when everything is new, somebody dies, and somebody joins.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use flare_benches::measure::{median, time};
use flare_core::internals::{Worker, assign};
use flare_core::model::NodeId;

use crate::Result;
use crate::number::number;

/// Slots are planned again while nobody works them, so it must not take long.
const LIMIT: Duration = Duration::from_millis(50);

/// Measures for some rounds each.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (mut slots, mut nodes, mut rounds) = (16_384_usize, 100_u64, 21_usize);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--slots" => slots = number(arg, args.next(), 1)?,
            "--nodes" => nodes = number(arg, args.next(), 2)?,
            "--rounds" => rounds = number(arg, args.next(), 1)?,
            _ => return Err(format!("cluster does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    println!("a plan of {slots} slots for {nodes} nodes, median of {rounds}, at most {LIMIT:?}:");
    let mut holds = true;
    for (weights, name) in [(1, "equal"), (7, "unequal")] {
        let workers: Vec<Worker> = (0..nodes).map(|at| worker(at, weights)).collect();
        let owners = assign(&workers, &BTreeMap::new(), &vec![None; slots], 0);
        let mut joined = workers.clone();
        joined.push(worker(nodes, weights));
        let moves = slots / 20;
        let none = vec![None; slots];
        let cases = [
            ("everything is new", &workers[..], &none, 0),
            ("nothing changed", &workers[..], &owners, moves),
            ("a node died", &workers[1..], &owners, 0),
            ("a node joined", &joined[..], &owners, moves),
        ];
        for (case, workers, owners, moves) in cases {
            let once = |_| {
                let took = time(|| {
                    black_box(assign(workers, &BTreeMap::new(), black_box(owners), moves));
                    Ok::<_, crate::Error>(())
                })?;
                Ok(took.as_secs_f64() * 1e3)
            };
            let took = median((0..rounds).map(once).collect::<Result<_>>()?);
            holds &= took <= LIMIT.as_secs_f64() * 1e3;
            println!("  {name:>7} weights, {case:<18} {took:>8.3} ms");
        }
    }
    Ok(holds)
}

fn worker(number: u64, weights: u64) -> Worker {
    let id = NodeId::from_bytes(u128::from(number).to_be_bytes());
    let weight = u32::try_from(1 + number % weights).unwrap_or(1);
    Worker::new(id, format!("node-{number}"), weight)
}
