//! Three processes that share the work: documents and queues in MongoDB, agreement on who works what in
//! etcd. Starts them, puts documents all the time, kills one, shows how its slots move to the others
//! and that nothing is lost. Ends by itself.
//!
//! `FLARE_MONGODB_URI` and `FLARE_ETCD_ENDPOINTS` say where the stores are (this machine unless set), the
//! first argument which database and keys to use (`flare-example-cluster` unless given). With `--watch`
//! it goes on until ctrl-c, and whatever you kill it starts again.
//!
//! What a service of your own would take from here is `node.rs`.

#![allow(clippy::print_stdout, reason = "a program for people")]

mod audience;
mod node;
mod origin;
mod processes;
mod stores;
mod table;

use std::error::Error;
use std::time::Duration;

use flare_core::Flare;
use flare_core::cluster::Health;
use flare_core::port::{Clock, SystemClock};

use crate::audience::Audience;
use crate::origin::Origin;
use crate::processes::Processes;
use crate::stores::Stores;
use crate::table::Table;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// How often the table is shown.
const LOOK: Duration = Duration::from_millis(500);
/// For everything that takes as long as it takes.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    // For the program itself, whose nodes are processes of their own.
    if let [first, name, namespace] = &arguments[..]
        && first == "node"
    {
        return node::run(name, &Stores::named(namespace)).await;
    }
    let watch = arguments.iter().any(|argument| argument == "--watch");
    arguments.retain(|argument| argument != "--watch");
    let namespace = arguments.pop().unwrap_or_else(|| "flare-example-cluster".to_owned());
    demonstrate(&Stores::named(&namespace), watch).await
}

async fn demonstrate(stores: &Stores, watch: bool) -> Result<(), Box<dyn Error>> {
    let clock = SystemClock::new();
    // Never run: it puts documents and looks at the cluster, as any service beside the nodes could.
    let (flare, _) = stores.flare("origin").await?.build()?;
    let audience = Audience::start().await?;
    let origin = Origin::start(flare.clone(), &audience).await?;
    let mut processes = Processes::new(stores.namespace());
    for name in NAMES {
        processes.start(name)?;
    }
    println!("three nodes start, {} clients listen\n", audience::CLIENTS);
    let mut show = Show { clock, flare, audience, origin, processes, table: Table::default() };

    show.until("every slot is worked", |view| view.health == Health::Green && view.is_shared(3))
        .await?;
    show.seconds(4).await?;
    if watch {
        return show.forever().await;
    }

    let victim = show.processes.kill("b").await?;
    let killed = show.clock.monotonic();
    show.table
        .say(&format!("\nnode b (process {victim}) is killed; its lease lives on for a moment\n"));
    show.until("the others work its slots", |view| view.is_shared(2) && view.unassigned() == 0)
        .await?;
    let took = show.clock.monotonic() - killed;
    show.seconds(3).await?;

    show.table.say("\nnode b is started again\n");
    show.processes.start("b")?;
    show.until("it has its share", |view| view.health == Health::Green && view.is_shared(3))
        .await?;
    show.seconds(2).await?;
    show.end(took).await
}

/// Everything that is on.
struct Show {
    clock: SystemClock,
    flare: Flare,
    audience: Audience,
    origin: Origin,
    processes: Processes,
    table: Table,
}

impl Show {
    /// Goes on, with the table on the screen, until the cluster is as it should be.
    async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&table::Glance) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let give_up_at = self.clock.monotonic() + LIMIT;
        loop {
            let glance = self.look().await?;
            if is_so(&glance) {
                self.table.say(what);
                return Ok(());
            }
            if self.clock.monotonic() > give_up_at {
                return Err(format!("after {LIMIT:?} it is not so that {what}").into());
            }
        }
    }

    async fn seconds(&mut self, seconds: u64) -> Result<(), Box<dyn Error>> {
        let until = self.clock.monotonic() + Duration::from_secs(seconds);
        while self.clock.monotonic() < until {
            self.look().await?;
        }
        Ok(())
    }

    async fn forever(&mut self) -> Result<(), Box<dyn Error>> {
        self.table.say("ctrl-c ends it; kill any of the processes, and it is started again");
        let ctrl_c = tokio::signal::ctrl_c();
        tokio::pin!(ctrl_c);
        loop {
            tokio::select! {
                _ = &mut ctrl_c => return self.leave().await,
                looked = self.look() => drop(looked?),
            }
            self.processes.revive()?;
        }
    }

    async fn look(&mut self) -> Result<table::Glance, Box<dyn Error>> {
        self.clock.sleep(LOOK).await;
        let view = self.flare.cluster().await?;
        let glance = table::Glance::new(&view, &self.processes, &self.audience, &self.origin);
        self.table.print(&glance);
        Ok(glance)
    }

    /// Puts no more, waits until all is told, and says how it went.
    async fn end(mut self, took: Duration) -> Result<(), Box<dyn Error>> {
        let newest = self.origin.stop().await?;
        self.flare.settled(LIMIT).await?;
        let heard = self.audience.heard();
        let behind = self.audience.behind(&newest);
        let puts = self.origin.puts();
        self.table.say(&format!("\nputs {puts}, notifications {}", heard.notifications));
        println!(
            "the slots of the killed node were worked again after {:.1} s",
            took.as_secs_f64()
        );
        println!(
            "told twice, as nobody knew whether the killed node had told it: {}",
            heard.doubled
        );
        println!("told in the wrong order: {}", heard.backwards);
        println!("clients without the newest version of a document: {behind}");
        if behind > 0 || heard.backwards > 0 {
            return Err("that must not be".into());
        }
        println!("\nEvery client has the newest version of every document.");
        self.leave().await
    }

    async fn leave(&mut self) -> Result<(), Box<dyn Error>> {
        self.origin.stop().await?;
        self.origin.remove().await?;
        self.processes.end().await?;
        println!("the nodes have left");
        Ok(())
    }
}
