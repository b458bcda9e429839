//! Takes a number of subscriptions; pauses them all, and tells what they cost a Flare that has
//! nothing to do, beside the same Flare without them.

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_benches::measure::cpu_time;
use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};

use crate::Result;
use crate::e2e::{http, pause};
use crate::number::number;

/// The part of one core they may cost together.
const LIMIT: f64 = 0.01;
/// What was created and paused may still be on its way to the lanes.
const SETTLES: Duration = Duration::from_secs(3);

/// Measures for some seconds each (400: longer than the lanes' sweep takes to come round).
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (mut subscriptions, mut seconds) = (10_000, 400);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--subscriptions" => subscriptions = number(arg, args.next(), 1)?,
            "--seconds" => seconds = number(arg, args.next(), 1)?,
            _ => return Err(format!("idle does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let holds = runtime.block_on(measure(subscriptions, Duration::from_secs(seconds)))?;
    runtime.shutdown_background();
    Ok(holds)
}

async fn measure(subscriptions: usize, time: Duration) -> Result<bool> {
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).http(http()?).build()?;
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
    let resource = flare.create_resource(new).await?;
    pause(SETTLES).await;
    let none = cores(time).await?;
    for number in 0..subscriptions {
        let spec = SubscriptionSpec::post(format!("http://client-{number}.example.com/{{item}}"));
        let created = flare.create_subscription(resource.id, spec).await?;
        flare.pause(created.id).await?;
    }
    // Some changes for them to hold.
    for item in 0..10 {
        flare.put_json(&format!("http://api.example.com/items/{item}"), r#"{"rev":1}"#).await?;
    }
    pause(SETTLES).await;
    let all = cores(time).await?;
    running.abort();
    let cost = all - none;
    println!("CPU of an idle Flare, in cores over {time:?}:");
    println!("  without subscriptions      {none:.4}");
    println!("  {subscriptions:>6} paused subscriptions {all:.4}");
    println!("  difference                 {cost:.4}, claimed at most {LIMIT}");
    Ok(cost <= LIMIT)
}

/// Cores this process keeps busy.
async fn cores(time: Duration) -> Result<f64> {
    let before = cpu_time(std::process::id())?;
    pause(time).await;
    Ok((cpu_time(std::process::id())? - before).as_secs_f64() / time.as_secs_f64())
}
