//! Takes documents; puts them into a Flare with default settings, on the store to be measured, and gives what
//! it took until every client had every one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_benches::world::body;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::subscription::BatchOptions;
use flare_core::model::{NewResource, ResourceId, SubscriptionId, SubscriptionSpec};
use flare_core::port::Delivery;
use flare_core::{ErrorKind, Flare};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::fill;
use super::options::Options;
use super::pace::Pace;
use super::receiver::Receiver;
use super::rest::Rest;
use super::round::{Round, Start};
use super::stores::MeasuredStore;
use crate::Result;

/// How long notifications wait for others that go with them.
const GATHERED: Duration = Duration::from_millis(20);
/// How long what is in flight to clients that answer may take to be stored.
const STORED: Duration = Duration::from_millis(50);
/// How long a put waits that was refused because the store is busy.
const AGAIN: Duration = Duration::from_millis(5);
const SETTLED: Duration = Duration::from_secs(60);
/// What requests are signed with, if they are.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Filters that want every document: by a text, and by a number.
const WANTED: &str = "document.owner.name == 'Ada' && document.active";
const WANTED_VALUE: &str = "document.stock == 42 && document.active";
/// Beside each subscription with it, so many whose filters want none.
const UNCONCERNED: usize = 99;

/// How both sides make requests.
pub(crate) fn http() -> Result<HttpConfig> {
    Ok(HttpConfig::new().guard(Guard::default().allow("127.0.0.0/8")?))
}

/// A Flare that runs.
pub(super) struct Running {
    options: Options,
    store: Box<dyn MeasuredStore>,
    resource: ResourceId,
    pub(super) subscriptions: Vec<SubscriptionId>,
    pub(super) flare: Flare,
    rest: Option<Rest>,
    stop: oneshot::Sender<()>,
    runtime: JoinHandle<flare_core::Result<()>>,
    round: i64,
}

/// What a Flare that ran has left.
pub(super) struct Left {
    pub(super) store: Box<dyn MeasuredStore>,
    pub(super) resource: ResourceId,
    pub(super) subscriptions: Vec<SubscriptionId>,
    /// The last revision that was put.
    pub(super) revision: i64,
}

impl Running {
    /// Starts one with its subscriptions, delivering over HTTP unless told otherwise.
    pub(super) async fn new(
        options: &Options,
        receiver: &Receiver,
        delivery: Option<Arc<dyn Delivery>>,
    ) -> Result<Self> {
        let store = options.store.make().await?;
        let backend = store.open().await?;
        let repository = backend.repository.clone().ok_or("the store has no repository")?;
        let mut builder = Flare::builder(backend).http(http()?);
        if let Some(delivery) = delivery {
            builder = builder.delivery(delivery);
        }
        let (flare, runtime) = builder.build()?;
        let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
        let resource = flare.create_resource(new).await?.id;
        let subscriptions = subscribe(&flare, resource, options, receiver).await?;
        if options.is_large() {
            fill::settled(&*repository, resource, &subscriptions, options.documents).await?;
        }
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::spawn(runtime.run(async move {
            let _ = stopped.await;
        }));
        let rest = match options.rest {
            true => Some(Rest::start(&flare).await?),
            false => None,
        };
        let (options, round) = (options.clone(), fill::REVISION);
        Ok(Self { options, store, resource, subscriptions, flare, rest, stop, runtime, round })
    }

    pub(super) fn store(&self) -> &dyn MeasuredStore {
        &*self.store
    }

    /// Changes as many documents as a round does and waits until everybody was told.
    pub(super) async fn round(&mut self, receiver: &mut Receiver) -> Result<Round> {
        self.next(self.options.changes, receiver).await?;
        let start = Start::now(receiver)?;
        let put_at = self.put_all(self.round).await?;
        let put = start.elapsed().as_secs_f64() * 1e6 / self.options.changes as f64;
        receiver.complete().await?;
        match self.options.is_disturbed() {
            false => self.settled().await?,
            // What hangs or fails is never settled, and what does not is stored at once.
            true => super::pause(STORED).await,
        }
        let (mut round, received) = start.end(receiver).await?;
        (round.put, round.latencies) = (put, received.latencies(&put_at));
        Ok(round)
    }

    /// Puts `changes` documents, of which everybody is told once `then` has been done.
    pub(super) async fn put_some(
        &mut self,
        changes: usize,
        receiver: &mut Receiver,
        then: impl AsyncFnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        self.next(changes, receiver).await?;
        let numbers = (0..changes).map(|it| (it, self.number(it, changes, self.round)));
        put(self.flare.clone(), numbers.collect(), body(self.round, super::BODY)).await?;
        then(self).await?;
        receiver.complete().await?;
        self.settled().await
    }

    /// Makes ready for the next round, in which `changes` documents change.
    async fn next(&mut self, changes: usize, receiver: &mut Receiver) -> Result<()> {
        self.round += 1;
        let step = self.options.documents / changes;
        receiver.expect_some(self.round, self.options.healthy(), changes, step).await
    }

    /// The document that changes as the `index`th of `changes` at a revision: one here, one there among those
    /// that are stored.
    fn number(&self, index: usize, changes: usize, revision: i64) -> usize {
        /// Coprime to any step that is not a multiple of it, so that others follow in each round.
        const STRIDE: usize = 7_919;
        let step = self.options.documents / changes;
        index * step + (revision as usize * STRIDE) % step
    }

    /// Puts documents at a revision; gives when each put returned.
    pub(super) async fn put_all(&self, revision: i64) -> Result<Vec<u64>> {
        let content = body(revision, super::BODY);
        let (changes, putters) = (self.options.changes, self.options.putters);
        let putters: Vec<_> = (0..putters)
            .map(|first| {
                let indexes = (first..changes).step_by(putters);
                let numbers: Vec<(usize, usize)> =
                    indexes.map(|index| (index, self.number(index, changes, revision))).collect();
                match &self.rest {
                    None => tokio::spawn(put(self.flare.clone(), numbers, content.clone())),
                    Some(rest) => tokio::spawn(rest.clone().put(numbers, content.clone())),
                }
            })
            .collect();
        let mut put_at = vec![0; changes];
        for putter in putters {
            for (index, at) in putter.await?? {
                put_at[index] = at;
            }
        }
        Ok(put_at)
    }

    /// Puts `changes` documents one by one, `every` so often, whatever the answers; gives how long it took in
    /// milliseconds from each put's begin until each client was told, shortest first.
    pub(super) async fn paced(
        &mut self,
        changes: usize,
        every: Duration,
        receiver: &mut Receiver,
    ) -> Result<Vec<f64>> {
        self.next(changes, receiver).await?;
        let content = body(self.round, super::BODY);
        let (mut put_at, mut puts) = (Vec::new(), Vec::new());
        let mut pace = Pace::new(every);
        for index in 0..changes {
            let number = self.number(index, changes, self.round);
            pace.next().await?;
            put_at.push(super::now_nanos());
            let (flare, content) = (self.flare.clone(), content.clone());
            puts.push(tokio::spawn(put(flare, vec![(index, number)], content)));
        }
        for put in puts {
            put.await??;
        }
        receiver.complete().await?;
        self.settled().await?;
        let received = receiver.received().await?;
        match received.lost() {
            0 => Ok(received.latencies(&put_at)),
            lost => Err(format!("{lost} of {changes} documents at a time did not arrive").into()),
        }
    }

    pub(super) async fn settled(&self) -> Result<()> {
        Ok(self.flare.settled(SETTLED).await?)
    }

    /// Lets it finish, and gives what it leaves; what hangs is dropped.
    pub(super) async fn stop(self) -> Left {
        if self.options.hang > 0 {
            self.runtime.abort();
        }
        let _ = self.stop.send(());
        let _ = self.runtime.await;
        let Self { store, resource, subscriptions, round, .. } = self;
        Left { store, resource, subscriptions, revision: round }
    }

    /// Lets it finish, and removes what it stored.
    pub(super) async fn end(self) -> Result<()> {
        self.stop().await.store.remove().await
    }
}

async fn subscribe(
    flare: &Flare,
    resource: ResourceId,
    options: &Options,
    receiver: &Receiver,
) -> Result<Vec<SubscriptionId>> {
    let mut subscriptions = Vec::new();
    for number in 0..options.subscriptions {
        let mut spec = match options.batch {
            None => SubscriptionSpec::post(receiver.url("{revision}", number, "{item}")),
            Some(most) => {
                let batch = BatchOptions::of(most).wait(GATHERED);
                SubscriptionSpec::post(receiver.batch_url(number)).batch(batch)
            }
        };
        if options.filter {
            spec = spec.filter(if options.filter_values { WANTED_VALUE } else { WANTED });
        }
        if options.signing {
            spec = spec.signing([SECRET]);
        }
        if let Some(rate) = options.rate {
            spec = spec.rate(rate, Duration::from_secs(1));
        }
        subscriptions.push(flare.create_subscription(resource, spec).await?.id);
    }
    let unconcerned = if options.filter { options.subscriptions * UNCONCERNED } else { 0 };
    for number in 0..unconcerned {
        let filter = unconcerned_filter(options, number);
        // Nothing is ever sent there.
        let url = receiver.url("{revision}", options.subscriptions + number, "{item}");
        let spec = SubscriptionSpec::post(url);
        flare.create_subscription(resource, spec.filter(filter)).await?;
    }
    Ok(subscriptions)
}

/// A filter that wants none of the documents, another one for each number.
fn unconcerned_filter(options: &Options, number: usize) -> String {
    match number % 2 {
        _ if !options.filter_values => {
            format!("document.owner.name == 'Eve {number}' && document.active")
        }
        0 => format!("document.stock == {} && document.active", 1_000 + number),
        _ => format!("document.owner.name in ['Eve {number}', 'Bob {number}'] && document.active"),
    }
}

/// Puts documents one after the other, each known by its index and its number; gives when each was stored.
async fn put(
    flare: Flare,
    numbers: Vec<(usize, usize)>,
    content: Bytes,
) -> Result<Vec<(usize, u64)>> {
    let mut put_at = Vec::new();
    for (index, number) in numbers {
        let url = fill::url(number);
        loop {
            match flare.put_json(&url, content.clone()).await {
                Ok(_) => break,
                // As an origin would: a store that is busy is asked again.
                Err(error) if error.kind() == ErrorKind::Busy => super::pause(AGAIN).await,
                Err(error) => return Err(error.into()),
            }
        }
        put_at.push((index, super::now_nanos()));
    }
    Ok(put_at)
}
