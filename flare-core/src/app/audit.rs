//! Takes who acts; gives a handle whose calls are told as theirs, and what was done by everybody.

use std::sync::Arc;
use std::time::Duration;

use super::flare::Flare;
use crate::error::Result;
use crate::model::{Actor, AuditAction, AuditEntry, AuditSubject};
use crate::port::{Listing, Page};

/// How long the log waits for what this process has yet to store.
const STORING: Duration = Duration::from_secs(1);

impl Flare {
    /// The same handle for calls on behalf of one of that name, such as the name of an API token: the log of
    /// what was done says so. Cheap; make one for each request.
    ///
    /// ```
    /// use flare_backend_memory::MemoryBackend;
    /// use flare_core::port::Page;
    /// use flare_core::{Flare, model::NewResource};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let (flare, runtime) = Flare::builder(MemoryBackend::new()).build()?;
    /// runtime.unused();
    /// let users = NewResource::new("http://api.example.com/users/{id}").change_field("rev");
    /// let users = flare.acting_as("ann").create_resource(users).await?;
    /// let log = flare.audit_log(None, Page::new(30, 0)).await?;
    /// assert_eq!(log.items[0].actor.to_string(), "ann");
    /// assert_eq!(log.items[0].subject.id(), users.id.to_string());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn acting_as(&self, name: impl Into<String>) -> Self {
        let mut acting = self.clone();
        acting.actor = Arc::new(Actor::named(name));
        acting
    }

    /// What operators and nodes did, newest first: all of it, or to one subject. Bounded by
    /// [`Settings::audit_limit`](crate::Settings::audit_limit) and
    /// [`audit_retention`](crate::Settings::audit_retention).
    ///
    /// What this process did is there at once, unless it cannot be stored within a second; what others did
    /// follows within moments. A process that is killed may take what it did last with it.
    pub async fn audit_log(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        let context = self.context();
        context.audit.flush(STORING).await;
        let listing = context.repository.list_audit(subject, page).await?;
        listing.unreadable.iter().for_each(|it| context.note_unreadable(it));
        Ok(listing)
    }

    /// Tells the log that a way in was refused, by what was wrong with it: a few fixed words, such as
    /// `unknown-token`. Many of them are told together, once a minute, with their number.
    pub fn note_refused_sign_in(&self, what: &str) {
        self.context().audit.refuse(AuditSubject::sign_in(what));
    }

    /// Tells the log what was done by this handle's actor.
    pub(super) fn tell(
        &self,
        action: AuditAction,
        subject: AuditSubject,
        detail: impl Into<String>,
    ) {
        self.context().audit.record(&self.actor, action, subject, detail);
    }
}
