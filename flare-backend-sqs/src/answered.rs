//! Takes what SQS says of a batch, item by item, in any order; gives each item its own answer.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::BatchResultErrorEntry;
use flare_core::{Error, ErrorKind, Result};

use crate::{BACKEND, error};

/// The answer to a batch whose items are called by their places.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    done: Vec<usize>,
    failed: Vec<BatchResultErrorEntry>,
}

impl Answered {
    pub(crate) fn new<T>(
        done: &[T],
        id: impl Fn(&T) -> &str,
        failed: Vec<BatchResultErrorEntry>,
    ) -> Self {
        Self { done: done.iter().filter_map(|it| id(it).parse().ok()).collect(), failed }
    }
}

/// Puts the answers where they belong; `places` are those the request was about. A request that
/// failed failed for all of them.
pub(crate) fn put(
    operation: &'static str,
    answers: &mut [Result<()>],
    places: &[usize],
    answered: Result<Answered>,
) {
    let answered = match answered {
        Ok(answered) => answered,
        Err(error) => return places.iter().for_each(|it| answers[*it] = Err(error.clone())),
    };
    for place in places {
        let of_place = |it: &&BatchResultErrorEntry| it.id().parse() == Ok(*place);
        answers[*place] = match answered.failed.iter().find(of_place) {
            Some(failed) => Err(error::from_entry(operation, failed)),
            None if answered.done.contains(place) => Ok(()),
            None => {
                let error = Error::new(ErrorKind::Timeout, operation).with_backend(BACKEND);
                Err(error.with_detail("the answer does not say what became of it"))
            }
        };
    }
}

/// An item that could not even be written down.
pub(crate) fn unbuilt(operation: &'static str, error: &BuildError) -> Error {
    Error::new(ErrorKind::Internal, operation).with_backend(BACKEND).with_detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(answers: Vec<Result<()>>) -> Vec<Option<ErrorKind>> {
        answers.into_iter().map(|it| it.err().map(|error| error.kind())).collect()
    }

    #[test]
    fn each_item_of_a_batch_has_its_own_answer() {
        let failure = |id: &str, code: &str| {
            let entry = BatchResultErrorEntry::builder().id(id).code(code).sender_fault(true);
            entry.build().unwrap()
        };
        let failed = vec![failure("3", "ReceiptHandleIsInvalid"), failure("0", "Odd")];
        let answered = Answered::new(&["99", "1", "x"], |it| it, failed);
        let mut answers = vec![Ok(()); 5];
        put("settle", &mut answers, &[1, 3, 4], Ok(answered));
        let expected = [None, None, None, Some(ErrorKind::Lost), Some(ErrorKind::Timeout)];
        assert_eq!(kinds(answers), expected);
    }

    #[test]
    fn a_request_that_failed_failed_for_all_it_was_about() {
        let mut answers = vec![Ok(()); 3];
        put("send", &mut answers, &[0, 2], Err(Error::new(ErrorKind::Busy, "send")));
        assert_eq!(kinds(answers), [Some(ErrorKind::Busy), None, Some(ErrorKind::Busy)]);
    }
}
