//! What a client that takes changes when it likes asks for, and what it is given.

use std::time::Duration;

use flare_core::Pull;
use flare_core::{PullOutcome, PullSettlement, Pulled};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::whole::Whole;
use super::word::OutcomeWord;

/// How much of what waits is to be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"quantity": 10}))]
pub(crate) struct Demand {
    /// At most so many notifications.
    #[schema(value_type = u32)]
    pub(crate) quantity: Whole<0, { u32::MAX }>,
}

/// What a demand did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Demanded {
    /// How many notifications are being sent.
    pub(crate) delivering: u64,
}

/// How much of what waits is to be handed out, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Pull, example = json!({"max": 10, "waitSeconds": 0}))]
pub(crate) struct PullInput {
    /// At most so many notifications.
    #[schema(value_type = u32, minimum = 1, maximum = 1000)]
    max: Whole<1, 1000>,
    /// How long to wait for a change if nothing waits; not at all unless set.
    #[schema(value_type = Option<u32>, maximum = 20)]
    wait_seconds: Option<Whole<0, 20>>,
    /// How long they are the caller's before others get them; 30 unless set.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 43200)]
    lease_seconds: Option<Whole<1, 43200>>,
}

impl PullInput {
    pub(crate) fn wanted(&self) -> Pull {
        let seconds = |count: u32| Duration::from_secs(count.into());
        let mut wanted = Pull::new(self.max.0 as usize);
        if let Some(Whole(wait)) = self.wait_seconds {
            wanted = wanted.wait(seconds(wait));
        }
        if let Some(Whole(lease)) = self.lease_seconds {
            wanted = wanted.lease(seconds(lease));
        }
        wanted
    }
}

/// What was handed out.
#[derive(Serialize, ToSchema)]
pub(crate) struct PulledList {
    notifications: Vec<PulledNotification>,
}

/// A notification that was handed out.
#[derive(Serialize, ToSchema)]
struct PulledNotification {
    /// What it is settled by.
    receipt: String,
    /// The envelope: `id`, `action`, `revision`, `updatedAt`, `webhookId`, and `data` and `document` if
    /// there are any.
    #[schema(value_type = Object)]
    notification: Box<RawValue>,
}

impl PulledList {
    pub(crate) fn new(pulled: Vec<Pulled>) -> serde_json::Result<Self> {
        let shown = |pulled: Pulled| {
            let notification = serde_json::from_slice(&pulled.notification)?;
            Ok(PulledNotification { receipt: pulled.receipt, notification })
        };
        Ok(Self {
            notifications: pulled.into_iter().map(shown).collect::<serde_json::Result<_>>()?,
        })
    }
}

/// What became of what was handed out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"receipts": []}))]
pub(crate) struct Settle {
    receipts: Vec<SettledReceipt>,
}

/// What became of one notification.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SettledReceipt {
    receipt: String,
    outcome: OutcomeWord,
}

impl Settle {
    pub(crate) fn outcomes(self) -> (Vec<String>, Vec<(String, PullOutcome)>) {
        let given = self.receipts.into_iter().map(|it| (it.receipt, it.outcome.0));
        let given: Vec<(String, PullOutcome)> = given.collect();
        (given.iter().map(|(receipt, _)| receipt.clone()).collect(), given)
    }
}

/// What was settled, in the order it was given.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettledList {
    receipts: Vec<ReceiptResult>,
}

/// What became of one receipt.
#[derive(Debug, Serialize, ToSchema)]
struct ReceiptResult {
    receipt: String,
    result: ResultWord,
}

/// It is stored; its lease had ended; a newer version, or everything anew, is told already; or the store failed,
/// so that it is to be settled again.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PullResult)]
enum ResultWord {
    Settled,
    Expired,
    Overtaken,
    Failed,
}

impl SettledList {
    pub(crate) fn new(receipts: Vec<String>, settled: Vec<PullSettlement>) -> Self {
        let result = |(receipt, settled)| {
            let result = match settled {
                PullSettlement::Done => ResultWord::Settled,
                PullSettlement::Overtaken => ResultWord::Overtaken,
                PullSettlement::Failed => ResultWord::Failed,
                // Nothing was stored.
                _ => ResultWord::Expired,
            };
            ReceiptResult { receipt, result }
        };
        Self { receipts: receipts.into_iter().zip(settled).map(result).collect() }
    }
}
