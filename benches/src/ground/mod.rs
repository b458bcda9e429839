//! Takes the claims about what Flare costs; measures each and says whether it holds.

mod claim;
mod memory;
mod options;
mod speed;
mod status;

use claim::Claim;
pub(crate) use memory::{WEIGH, weigh};
use options::Options;

use crate::Result;

/// Measures every claim and prints the figures; tells whether all hold.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    let mut claims = Vec::new();
    // In the order of how much each leaves behind in this process.
    claims.push(speed::unchanged(&options)?);
    claims.extend(memory::claims(&options)?);
    claims.push(status::status(&options)?);
    claims.extend(speed::stores(&options)?);

    println!("{}", Claim::HEADER);
    for claim in &claims {
        println!("{claim}");
    }
    let broken: Vec<&Claim> = claims.iter().filter(|claim| !claim.holds()).collect();
    for claim in &broken {
        eprintln!("does not hold: {} is {:.2}, claimed {}", claim.name, claim.figure, claim.limit);
    }
    if options.json {
        println!("{}", claim::to_json(&claims, options.documents));
    }
    Ok(broken.is_empty())
}
