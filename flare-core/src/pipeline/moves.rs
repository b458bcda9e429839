//! Takes documents that several resources match; gives them read or deleted where they are stored,
//! and gone where they moved from. `overlap` decides, and says why that is safe.

use tracing::warn;

use super::batch::batches;
use super::context::Context;
use super::ingest::{Announced, read_revision, to_announce, unanswered};
use super::overlap::Overlap;
use super::stage::chain;
use crate::error::{Error, Result};
use crate::model::{
    Document, DocumentChange, DocumentKey, DocumentUrl, MovedFrom, Resource, ResourceState,
    TraceContext,
};
use crate::port::{DocumentWrite, Undispatched, WriteOutcome};

/// A document whose former resource has yet to let it go.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) url: DocumentUrl,
    pub(crate) from: MovedFrom,
    pub(crate) trace: Option<TraceContext>,
    /// What it leaves may have yet to leave another resource itself: more than two match, or nothing is known of that.
    pub(crate) may_leave_several: bool,
}

impl Move {
    /// The document in the resource that it leaves.
    fn left(&self) -> DocumentKey {
        DocumentKey::new(self.from.resource, self.url.clone())
    }
}

/// Makes documents gone where they moved from; one answer per move: what is to be announced then.
/// May be done again at any time.
///
/// What a document leaves may be a move that died half way: the resource before it is left first, as
/// its note is forgotten once this one is told of.
pub(crate) async fn finish(context: &Context, moves: Vec<Move>) -> Vec<Result<Vec<Announced>>> {
    let chains = chains(context, moves).await;
    let deepest = chains.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let mut answers: Vec<Result<Vec<Announced>>> = Vec::with_capacity(chains.len());
    answers.extend(
        chains.iter().map(|chain| chain.as_ref().map(|_| Vec::new()).map_err(Error::clone)),
    );
    for depth in (0..deepest).rev() {
        let open = chains.iter().enumerate().filter(|(place, _)| answers[*place].is_ok());
        let open =
            open.filter_map(|(place, chain)| Some((place, chain.as_ref().ok()?.get(depth)?)));
        let open: Vec<(usize, &Move)> = open.collect();
        for (place, left) in leave(context, open).await {
            match (&mut answers[place], left) {
                (Ok(announced), Ok(left)) => announced.extend(left),
                (answer, Err(error)) => *answer = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
    }
    answers
}

/// Each move with those that what it leaves has yet to make, one after the other.
async fn chains(context: &Context, moves: Vec<Move>) -> Vec<Result<Vec<Move>>> {
    let mut chains: Vec<Result<Vec<Move>>> = moves.into_iter().map(|it| Ok(vec![it])).collect();
    let may_go_on =
        |chain: &Result<Vec<Move>>| chain.iter().flatten().any(|it| it.may_leave_several);
    let places = chains.iter().enumerate().filter(|(_, chain)| may_go_on(chain));
    let mut open: Vec<usize> = places.map(|(place, _)| place).collect();
    while !open.is_empty() {
        let last = |place: &usize| Some((*place, chains[*place].as_ref().ok()?.last()?.left()));
        let (places, keys): (Vec<usize>, Vec<DocumentKey>) = open.iter().filter_map(last).unzip();
        let mut heads = Vec::with_capacity(keys.len());
        for keys in batches(context.batch_limit(), keys) {
            let (asked, read) = (keys.len(), |keys| context.repository.document_heads(keys));
            match context.each_readable(keys, read).await {
                Ok(found) => heads.extend(found),
                Err(error) => heads.extend(std::iter::repeat_n(Err(error), asked)),
            }
        }
        open.clear();
        for (place, head) in places.into_iter().zip(heads) {
            let note = match head {
                Ok(head) => head.and_then(|head| head.moved_from),
                Err(error) => {
                    chains[place] = Err(error);
                    continue;
                }
            };
            if let (Some(from), Ok(chain)) = (note, &mut chains[place])
                && let Some(last) = chain.last().cloned()
                // Notes of resources that came and went may name each other.
                && chain.iter().all(|it| it.from.resource != from.resource)
            {
                chain.push(Move { from, ..last });
                open.push(place);
            }
        }
    }
    chains
}

/// Makes documents gone where they moved from; what is to be announced then, of each.
async fn leave(
    context: &Context,
    moves: Vec<(usize, &Move)>,
) -> Vec<(usize, Result<Option<Announced>>)> {
    let mut answers = Vec::with_capacity(moves.len());
    for some in batches(context.batch_limit(), moves) {
        let write =
            |it: &Move| DocumentWrite::leave(it.left(), it.from.version).trace(it.trace.clone());
        let leaves = some.iter().map(|(_, it)| write(it)).collect();
        let outcomes = context.repository.write_documents(leaves).await;
        let announced = |((place, it), outcome): ((usize, &Move), Result<WriteOutcome>)| {
            (place, outcome.map(|outcome| to_announce(it.left(), &outcome)))
        };
        answers.extend(some.into_iter().zip(outcomes).map(announced));
    }
    answers
}

/// A write to the most specific resource, and what is known of the document's moves.
#[derive(Debug)]
pub(crate) struct MoveWritten {
    key: DocumentKey,
    /// Where this write says that the document came from.
    noted: Option<MovedFrom>,
    /// Where the document came from before, unless that is done.
    unfinished: Option<MovedFrom>,
    trace: Option<TraceContext>,
    may_leave_several: bool,
}

impl MoveWritten {
    pub(crate) fn new(
        write: &DocumentWrite,
        unfinished: Option<MovedFrom>,
        may_leave_several: bool,
    ) -> Self {
        let DocumentWrite { key, trace, moved_from, .. } = write;
        let (key, trace) = (key.clone(), trace.clone());
        Self { key, noted: *moved_from, unfinished, trace, may_leave_several }
    }

    fn moves(&self) -> impl Iterator<Item = Move> {
        let other = self.unfinished.filter(|from| Some(*from) != self.noted);
        let moved = |from| Move {
            url: self.key.url.clone(),
            from,
            trace: self.trace.clone(),
            may_leave_several: self.may_leave_several,
        };
        self.noted.into_iter().chain(other).map(moved)
    }
}

/// Finishes the moves of documents that were written; gives the outcomes, and adds what is to be
/// announced. A document that moved is announced once it is gone where it came from: if that
/// fails, so does its write, and the reconciler finishes what is noted.
pub(crate) async fn conclude(
    context: &Context,
    mut written: Vec<MoveWritten>,
    mut outcomes: Vec<Result<WriteOutcome>>,
    changed: &mut Vec<Announced>,
) -> Vec<Result<WriteOutcome>> {
    let places = written.iter().zip(&outcomes).enumerate();
    let stored_nothing = |outcome: &WriteOutcome| !outcome.change.notifies();
    let overtaken: Vec<usize> = places
        .filter(|(_, (it, outcome))| {
            it.noted.is_some() && outcome.as_ref().is_ok_and(stored_nothing)
        })
        .map(|(place, _)| place)
        .collect();
    // Another put was faster, and stored a note of its own or none; its caller may have died.
    if !overtaken.is_empty() {
        let keys = overtaken.iter().map(|place| written[*place].key.clone()).collect();
        let read = |keys| context.repository.document_heads(keys);
        match context.each_readable(keys, read).await {
            Ok(heads) => {
                for (place, head) in overtaken.into_iter().zip(heads) {
                    match head {
                        Ok(head) => {
                            let noted = head.and_then(|head| head.moved_from);
                            (written[place].noted, written[place].unfinished) = (None, noted);
                        }
                        Err(error) => outcomes[place] = Err(error),
                    }
                }
            }
            Err(error) => {
                overtaken.into_iter().for_each(|place| outcomes[place] = Err(error.clone()));
            }
        }
    }
    let (mut places, mut moves) = (Vec::new(), Vec::new());
    for (place, (it, outcome)) in written.iter().zip(&outcomes).enumerate() {
        for moved in it.moves().filter(|_| outcome.is_ok()) {
            places.push(place);
            moves.push(moved);
        }
    }
    for (place, left) in places.into_iter().zip(finish(context, moves).await) {
        match left {
            Ok(left) => changed.extend(left),
            Err(error) => outcomes[place] = Err(error),
        }
    }
    let announced = |(it, outcome): (MoveWritten, &Result<WriteOutcome>)| {
        to_announce(it.key, outcome.as_ref().ok()?)
    };
    changed.extend(written.into_iter().zip(&outcomes).filter_map(announced));
    outcomes
}

/// What of the undispatched documents that were found may be announced, with what that makes gone: a
/// document that moved only once it is gone where it came from.
pub(crate) async fn finish_found(context: &Context, found: Vec<Undispatched>) -> Vec<Announced> {
    let mut announced = Vec::with_capacity(found.len());
    for found in found {
        if let Some(from) = found.moved_from {
            match finish_one(context, &found.key, from).await {
                Ok(Finished::Done(left)) => announced.extend(left),
                Ok(Finished::NotNow) => continue,
                Err(error) => {
                    warn!(error = %chain(&error), url = %found.key.url, "could not finish a move");
                    continue;
                }
            }
        }
        announced.push((found.key, found.version));
    }
    announced
}

enum Finished {
    Done(Vec<Announced>),
    /// The resource it moved to is on its way out, so where it came from may be the right place.
    NotNow,
}

async fn finish_one(context: &Context, key: &DocumentKey, from: MovedFrom) -> Result<Finished> {
    let resource = context.if_readable(context.repository.resource(key.resource).await)?.flatten();
    if resource.is_none_or(|resource| resource.state != ResourceState::Active) {
        return Ok(Finished::NotNow);
    }
    let this = Move { url: key.url.clone(), from, trace: None, may_leave_several: true };
    let answer = finish(context, vec![this]).await.pop();
    answer.unwrap_or_else(|| Err(unanswered("finish_move"))).map(Finished::Done)
}

/// How documents stand in the resources that match them; one answer per document, which fails if one
/// of its records cannot be read.
pub(crate) async fn look_at(
    context: &Context,
    asked: Vec<(DocumentUrl, Vec<Resource>)>,
) -> Result<Vec<Result<Overlap>>> {
    let mut heads = Vec::new();
    for keys in batches(context.batch_limit(), asked.iter().flat_map(keys_of)) {
        let read = |keys| context.repository.document_heads(keys);
        heads.extend(context.each_readable(keys, read).await?);
    }
    let mut heads = heads.into_iter();
    let overlap = |(url, resources): (DocumentUrl, Vec<Resource>)| {
        let its: Vec<Result<Option<Document>>> = heads.by_ref().take(resources.len()).collect();
        let its: Result<Vec<Option<Document>>> = its.into_iter().collect();
        its.map(|its| Overlap::new(url, resources, its))
    };
    Ok(asked.into_iter().map(overlap).collect())
}

fn keys_of((url, resources): &(DocumentUrl, Vec<Resource>)) -> impl Iterator<Item = DocumentKey> {
    resources.iter().map(|resource| DocumentKey::new(resource.id, url.clone()))
}

/// Reads a document where it is live.
pub(crate) async fn find(
    context: &Context,
    url: DocumentUrl,
    resources: Vec<Resource>,
) -> Result<Option<Document>> {
    let asked = (url, resources);
    let mut again = true;
    loop {
        let found = context.repository.documents(keys_of(&asked).collect()).await?;
        let overlap = Overlap::new(asked.0.clone(), asked.1.clone(), found);
        if !(again && overlap.is_doubtful()) {
            return Ok(overlap.into_live());
        }
        again = false;
    }
}

/// A delete of a document that several resources match.
#[derive(Debug)]
pub(crate) struct OverlappingDelete {
    pub(crate) url: DocumentUrl,
    pub(crate) resources: Vec<Resource>,
    /// The revision it names, as clients see it.
    pub(crate) shown: Option<String>,
    pub(crate) trace: Option<TraceContext>,
}

/// Deletes a document where it is live; gives what came of it, and what is to be announced.
pub(crate) async fn delete(
    context: &Context,
    operation: &'static str,
    delete: OverlappingDelete,
) -> Result<(WriteOutcome, Vec<Announced>)> {
    let OverlappingDelete { url, resources, shown, trace } = delete;
    let mut announced = Vec::new();
    // Each time around a put has moved it on, to a resource that is more specific still.
    let mut rounds = resources.len();
    loop {
        rounds = rounds.saturating_sub(1);
        let overlap = look_closely(context, operation, &url, &resources).await?;
        let deletion = overlap.deletion().ok_or_else(|| unanswered(operation))?;
        let rule = &deletion.resource.change;
        let revision = shown.as_deref().map(|shown| read_revision(rule, shown)).transpose();
        let revision = revision.map_err(|invalid| Error::invalid(operation, invalid))?;
        let moves = |from: Vec<MovedFrom>| {
            let moved = |from| Move {
                url: url.clone(),
                from,
                trace: trace.clone(),
                may_leave_several: true,
            };
            from.into_iter().map(moved).collect::<Vec<_>>()
        };
        for left in finish(context, moves(deletion.others)).await {
            announced.extend(left?);
        }
        let write = DocumentWrite::delete(deletion.key.clone(), revision).trace(trace.clone());
        let outcome = context.repository.write_documents(vec![write]).await.pop();
        let outcome = outcome.unwrap_or_else(|| Err(unanswered(operation)))?;
        if outcome.change == DocumentChange::Unchanged && deletion.may_move && rounds > 0 {
            continue;
        }
        for left in finish(context, moves(deletion.unfinished.into_iter().collect())).await {
            announced.extend(left?);
        }
        announced.extend(to_announce(deletion.key, &outcome));
        return Ok((outcome, announced));
    }
}

/// How one document stands; looks twice where once may not do.
async fn look_closely(
    context: &Context,
    operation: &'static str,
    url: &DocumentUrl,
    resources: &[Resource],
) -> Result<Overlap> {
    let look = async || {
        let found = look_at(context, vec![(url.clone(), resources.to_vec())]).await?.pop();
        found.unwrap_or_else(|| Err(unanswered(operation)))
    };
    let overlap = look().await?;
    if overlap.is_doubtful() { look().await } else { Ok(overlap) }
}
