//! Takes a path; gives a copy of the repository there, made by the store itself while everything goes on.

use std::path::Path;

use super::flare::Flare;
use crate::error::Result;
use crate::port::{StepProgress, no_backup};

impl Flare {
    /// Copies everything that is stored into a new file, as of one moment after the call: a complete store
    /// that can be opened in place of this one. Puts and deliveries go on meanwhile.
    ///
    /// A path where something is already is a conflict. A store that cannot do this, as one with a server of
    /// its own, answers *unsupported* and says what to use instead.
    ///
    /// ```
    /// # use flare_backend_memory::MemoryBackend;
    /// # use flare_core::{ErrorKind, Flare};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let (flare, runtime) = Flare::builder(MemoryBackend::new()).build()?;
    /// # runtime.unused();
    /// let refused = flare.backup("copy.db").await.unwrap_err(); // of memory
    /// assert_eq!(refused.kind(), ErrorKind::Unsupported);
    /// assert!(refused.to_string().contains("flare-backend-sqlite"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        self.backup_with(to, &()).await
    }

    /// As [`backup`](Self::backup), telling how far it is.
    pub async fn backup_with(
        &self,
        to: impl AsRef<Path>,
        progress: &dyn StepProgress,
    ) -> Result<()> {
        match self.upkeep() {
            Some(upkeep) => upkeep.backup(to.as_ref(), progress).await,
            None => {
                Err(no_backup("host", "the host's own repository has to be copied by the host"))
            }
        }
    }
}
