//! Takes puts, deletes and moves; stores what `detect_*` decides, and answers. A batch is two round trips: its
//! documents are locked and read, then written. One of new documents and others is four: a transaction that has locked
//! documents makes none, since a host's transaction that makes the same ones may wait for the locked.

use flare_core::model::DocumentKey;
use flare_core::port::{DocumentWrite, Operation, WriteOutcome};
use flare_core::{Error, ErrorKind, Result};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::lock::{Locked, Patience, State, columns, distinct, lock, taken};
use super::next::{Columns, Next};
use crate::codec::id as uuid;
use crate::connection::Session;
use crate::error;
use crate::fault::{Fault, Worked};

const OPERATION: &str = "write_documents";

/// Stores new documents and changed ones, with their contents; gives the new ones that were not there meanwhile.
const WRITE: &str = "WITH v AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], \
         $4::bigint[], $5::smallint[], $6::bigint[], $7::boolean[], $8::bigint[], $9::smallint[], \
         $10::text[], $11::bytea[], $12::bytea[], $13::bigint[]) \
         v(n, resource, url, revision, gone, updated, undispatched, dispatched, dispatched_gone, trace, \
         moved, content, i)), \
     list AS MATERIALIZED (SELECT nextval('flare.undispatched_n_seq') AS n), \
     made AS (INSERT INTO flare.documents (resource, hash, url, revision, gone, updated, undispatched, \
             dispatched, dispatched_gone, trace, moved, listed) \
         SELECT r.n, hashtextextended(v.url, 0), v.url, v.revision, v.gone, v.updated, v.undispatched, \
             v.dispatched, v.dispatched_gone, v.trace, v.moved, CASE WHEN v.undispatched THEN list.n END \
         FROM list CROSS JOIN v JOIN flare.resource_ids r ON r.id = v.resource \
         WHERE v.n IS NULL ORDER BY r.n, hashtextextended(v.url, 0), v.url \
         ON CONFLICT ON CONSTRAINT documents_key DO NOTHING \
         RETURNING n, resource, url, gone, updated, undispatched, listed), \
     changed AS (UPDATE flare.documents d SET revision = v.revision, gone = v.gone, updated = v.updated, \
             undispatched = v.undispatched, dispatched = v.dispatched, \
             dispatched_gone = v.dispatched_gone, trace = v.trace, moved = v.moved, open = NULL, \
             listed = CASE WHEN NOT v.undispatched THEN NULL WHEN d.undispatched THEN d.listed ELSE list.n END \
         FROM v CROSS JOIN list WHERE d.n = v.n RETURNING d.n, d.gone, d.updated, d.undispatched, d.listed), \
     stored AS (SELECT n, gone, updated, undispatched, listed FROM made \
         UNION ALL SELECT n, gone, updated, undispatched, listed FROM changed), \
     listed AS (INSERT INTO flare.undispatched (n, documents) SELECT list.n, array_agg(s.n) \
         FROM list JOIN stored s ON s.listed = list.n GROUP BY list.n), \
     buried AS (INSERT INTO flare.tombstones (document, updated) \
         SELECT s.n, s.updated FROM stored s WHERE s.gone = 1 AND NOT s.undispatched \
         ON CONFLICT (document) DO UPDATE SET updated = excluded.updated), \
     raised AS (DELETE FROM flare.tombstones t USING changed s WHERE t.document = s.n \
         AND (s.gone <> 1 OR s.undispatched)), \
     numbered AS (SELECT v.i, coalesce(v.n, made.n) AS n, v.content FROM v \
         LEFT JOIN (made JOIN flare.resource_ids r ON r.n = made.resource) \
             ON v.n IS NULL AND r.id = v.resource AND made.url = v.url), \
     kept AS (INSERT INTO flare.contents (document, content) \
         SELECT n, content FROM numbered WHERE n IS NOT NULL AND content IS NOT NULL \
         ON CONFLICT (document) DO UPDATE SET content = excluded.content) \
     SELECT i FROM numbered WHERE n IS NOT NULL";

const NUMBER: &str = "INSERT INTO flare.resource_ids (id) SELECT DISTINCT id FROM unnest($1::uuid[]) k(id) \
     WHERE NOT EXISTS (SELECT 1 FROM flare.resource_ids r WHERE r.id = k.id) ORDER BY id \
     ON CONFLICT DO NOTHING";

/// What came of a write in one transaction.
enum Answer {
    Done(Result<WriteOutcome>),
    /// Another transaction has the document.
    Taken,
    /// It makes a document, which was put off as this transaction has locked others.
    Later,
}

impl PostgresRepository {
    /// Writes each; those that somebody has locked are come back to, and hold up no other.
    pub(super) async fn write_all(&self, writes: &[DocumentWrite]) -> Vec<Result<WriteOutcome>> {
        let mut answers: Vec<Option<Result<WriteOutcome>>> = vec![None; writes.len()];
        let mut left: Vec<usize> = Vec::new();
        for (place, write) in writes.iter().enumerate() {
            match check_content(&write.operation, self.max_content) {
                Ok(()) => left.push(place),
                Err(error) => answers[place] = Some(Err(error)),
            }
        }
        let clock = &self.database.clock;
        let give_up_at = clock.monotonic().saturating_add(Patience::LIMIT);
        for patience in Patience::TURNS {
            if left.is_empty() || clock.monotonic() >= give_up_at {
                break;
            }
            // What was put off is written at once: each time around others were answered, so this ends.
            let mut now = std::mem::take(&mut left);
            while !now.is_empty() {
                let some: Vec<&DocumentWrite> = now.iter().map(|place| &writes[*place]).collect();
                let done = self.write_batch(&some, patience).await;
                let mut later = Vec::new();
                for (place, answer) in now.into_iter().zip(done) {
                    match answer {
                        Answer::Done(answer) => answers[place] = Some(answer),
                        Answer::Taken => left.push(place),
                        Answer::Later => later.push(place),
                    }
                }
                now = later;
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(taken(OPERATION)))).collect()
    }

    /// Writes what can be written now. One new document that a host's transaction has made, too, would hold
    /// up all: then those are found out, and the others are written without them.
    async fn write_batch(&self, writes: &[&DocumentWrite], patience: Patience) -> Vec<Answer> {
        let all = self.database.attempts(OPERATION, || self.write_some(writes, patience)).await;
        let error = match all {
            Ok(answers) => return answers,
            Err(error) => error,
        };
        let locked = error::is_locked(&error);
        if locked && (patience == Patience::Some || writes.len() == 1) {
            return writes.iter().map(|_| Answer::Taken).collect();
        }
        let failed =
            |error: Error| writes.iter().map(|_| Answer::Done(Err(error.clone()))).collect();
        if !is_of_some(&error) || writes.len() == 1 {
            return failed(error);
        }
        let taken = match self.database.attempts(OPERATION, || self.made_by_others(writes)).await {
            Ok(taken) => taken,
            Err(error) => return failed(error),
        };
        let free: Vec<&DocumentWrite> =
            writes.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(it, _)| *it).collect();
        let mut done = if locked {
            let done = self.database.attempts(OPERATION, || self.write_some(&free, patience)).await;
            done.unwrap_or_else(|error| free.iter().map(|_| unless_locked(error.clone())).collect())
        } else {
            self.write_singly(&free, patience).await
        }
        .into_iter();
        let answer = |taken| if taken { None } else { done.next() };
        taken.into_iter().map(answer).map(|it| it.unwrap_or(Answer::Taken)).collect()
    }

    /// Writes each by itself: one of them is refused for what it is.
    async fn write_singly(&self, writes: &[&DocumentWrite], patience: Patience) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let one = [*write];
            let done = self.database.attempts(OPERATION, || self.write_some(&one, patience)).await;
            answers.push(match done {
                Ok(answers) => answers.into_iter().next().unwrap_or(Answer::Taken),
                Err(error) => unless_locked(error),
            });
        }
        answers
    }

    /// Which of them are about new documents that an open transaction has made, too. Whoever waits for one waits
    /// for that transaction, so each is tried for a moment, and all is taken back.
    async fn made_by_others(&self, writes: &[&DocumentWrite]) -> Worked<Vec<bool>> {
        const SQL: &str = "SELECT flare.made_by_others($1::uuid[], $2::text[])";
        let keys: Vec<DocumentKey> = writes.iter().map(|write| write.key.clone()).collect();
        let (resources, urls) = columns(&keys);
        let mut session = self.database.session(OPERATION).await?;
        let rows = session.begin_in_haste(SQL, &[&resources, &urls]).await?;
        session.roll_back().await?;
        let mut made = vec![false; writes.len()];
        for row in &rows {
            let place: i64 = row.try_get(0)?;
            if let Some(it) = usize::try_from(place - 1).ok().and_then(|at| made.get_mut(at)) {
                *it = true;
            }
        }
        Ok(made)
    }

    async fn write_some(
        &self,
        writes: &[&DocumentWrite],
        patience: Patience,
    ) -> Worked<Vec<Answer>> {
        let (keys, which) = distinct(writes.iter().map(|write| &write.key));
        let mut session = self.database.session(OPERATION).await?;
        let locked = lock_numbered(&mut session, patience, &keys).await?;
        let mut nexts: Vec<Option<Result<Next<'_>>>> = locked.iter().map(Next::of).collect();
        let mut answers: Vec<Answer> = Vec::with_capacity(writes.len());
        for (write, place) in writes.iter().zip(&which) {
            answers.push(match &mut nexts[*place] {
                None => Answer::Taken,
                Some(Err(error)) => Answer::Done(Err(error.clone())),
                Some(Ok(next)) => Answer::Done(Ok(next.take(write, locked[*place].now))),
            });
        }
        if locked.iter().any(|locked| matches!(locked.state, State::Held { .. })) {
            put_off(&mut nexts, &mut answers, &which);
        }
        if !nexts.iter().any(is_changed) {
            session.roll_back().await?;
            return Ok(answers);
        }
        let written = store(&mut session, &keys, &nexts).await?;
        // One that was made by somebody else at the same moment is looked at again.
        for (answer, place) in answers.iter_mut().zip(&which) {
            if is_changed(&nexts[*place]) && !written.contains(place) {
                *answer = Answer::Taken;
            }
        }
        Ok(answers)
    }
}

/// Begins a transaction with the records of these keys, whose resources all have numbers. Numbers are given by a commit
/// of their own: a host's transaction may be giving the same one, and the port waits for none while it has locked documents.
async fn lock_numbered(
    session: &mut Session<'_>,
    patience: Patience,
    keys: &[DocumentKey],
) -> Worked<Vec<Locked>> {
    let locked = lock(session, OPERATION, patience, keys).await?;
    let unnumbered: Vec<Uuid> = keys
        .iter()
        .zip(&locked)
        .filter(|(_, locked)| !locked.numbered)
        .map(|(key, _)| uuid(key.resource.as_bytes()))
        .collect();
    if unnumbered.is_empty() {
        return Ok(locked);
    }
    session.roll_back().await?;
    session.begin_in_haste(NUMBER, &[&unnumbered]).await?;
    session.commit().await?;
    lock(session, OPERATION, patience, keys).await
}

/// Puts off the documents that are to be made.
fn put_off(nexts: &mut [Option<Result<Next<'_>>>], answers: &mut [Answer], which: &[usize]) {
    for (answer, place) in answers.iter_mut().zip(which) {
        if matches!(&nexts[*place], Some(Ok(next)) if next.changed && next.n.is_none()) {
            *answer = Answer::Later;
        }
    }
    for next in nexts {
        if let Some(Ok(next)) = next {
            next.changed &= next.n.is_some();
        }
    }
}

fn is_changed(next: &Option<Result<Next<'_>>>) -> bool {
    matches!(next, Some(Ok(next)) if next.changed)
}

/// It is come back to, if it was not to be had in time.
fn unless_locked(error: Error) -> Answer {
    if error::is_locked(&error) { Answer::Taken } else { Answer::Done(Err(error)) }
}

/// Whether it may be about some documents of a batch alone.
fn is_of_some(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Internal | ErrorKind::TooLarge)
}

fn check_content(operation: &Operation, most: usize) -> Result<(), Error> {
    let content = match operation {
        Operation::Put { content, .. } => Some(content),
        Operation::Delete { .. } | Operation::Leave { .. } => None,
    };
    match content.map(|content| content.as_bytes().len()) {
        Some(bytes) if bytes > most => {
            let detail = format!("{bytes} bytes, at most {most} fit (max-content)");
            let error = error::of(ErrorKind::TooLarge, OPERATION, detail);
            Err(error.with_field("document"))
        }
        _ => Ok(()),
    }
}

/// Writes what changed and ends the transaction; gives the places of what was written.
async fn store(
    session: &mut Session<'_>,
    keys: &[DocumentKey],
    nexts: &[Option<Result<Next<'_>>>],
) -> Worked<Vec<usize>> {
    let columns = Columns::of(keys, nexts);
    places(&session.finish(WRITE, &columns.values()).await?)
}

/// The places of what was written.
fn places(written: &[tokio_postgres::Row]) -> Worked<Vec<usize>> {
    let place = |row: &tokio_postgres::Row| -> Worked<usize> {
        let place: i64 = row.try_get(0).map_err(Fault::from)?;
        Ok(usize::try_from(place).unwrap_or(usize::MAX))
    };
    written.iter().map(place).collect()
}
