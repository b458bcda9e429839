//! Gives numbers that no process on the file ever gets again: taken in blocks, so that most cost nothing.

use super::tx::Tx;

/// How many are taken at a time. What a process does not use is never used.
const BLOCK: i64 = 1 << 16;

/// What is left of a block.
#[derive(Debug, Default)]
pub(crate) struct Serials {
    next: i64,
    end: i64,
}

impl Serials {
    /// Forgets the block: the transaction that took it was rolled back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Tx<'_> {
    /// A number that was never given before, greater than all this process got.
    pub(crate) fn serial(&mut self) -> rusqlite::Result<i64> {
        if self.serials.next == self.serials.end {
            let mut take = self.sql("UPDATE store SET serial = serial + ?1 RETURNING serial")?;
            let end: i64 = take.query_row([BLOCK], |row| row.get(0))?;
            *self.serials = Serials { next: end - BLOCK, end };
        }
        self.serials.next += 1;
        Ok(self.serials.next)
    }
}
