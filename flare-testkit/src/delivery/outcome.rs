//! D3, D4, D5, D6 and D10: what is reported of an attempt is what happened.

use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::port::{Delivery, FailureKind, RetryAfter};

use super::bench::{excerpt, failure, request, retry_after, status};
use crate::{Answer, HttpTarget, Subject};

/// Whatever the status, it is an answer with that status.
pub async fn d3_every_status_is_an_answer(subject: Subject<dyn Delivery>) {
    let statuses = [
        200, 201, 202, 204, 205, 206, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 407, 408,
        410, 418, 421, 429, 451, 499, 500, 502, 503, 504, 599,
    ];
    for expected in statuses {
        let target = HttpTarget::start(Answer::status(expected)).await;
        let outcome = subject.post(target.url("/")).await;
        assert_eq!(status(&outcome), Some(expected), "{outcome:?}");
    }
}

/// An interim answer (1xx) is passed over; the one that follows counts.
pub async fn d3_an_interim_answer_is_not_the_answer(subject: Subject<dyn Delivery>) {
    let both = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let target = HttpTarget::start(Answer::raw(both)).await;
    let outcome = subject.post(target.url("/")).await;
    assert_eq!(status(&outcome), Some(202), "{outcome:?}");
}

/// Whatever follows once the request has reached the client, it was sent.
pub async fn d4_what_the_client_saw_was_sent(subject: Subject<dyn Delivery>) {
    let answers = [
        Answer::status(200),
        Answer::status(500),
        Answer::close(),
        Answer::cut(),
        Answer::raw("no HTTP\r\n\r\n"),
        Answer::hang(),
        Answer::hang_after_head(),
    ];
    for answer in answers {
        let target = HttpTarget::start(answer.clone()).await;
        let mut request = request(&subject, target.url("/"));
        request.timeout = subject.ticks(5);
        let outcome = subject.deliver(request).await;
        assert!(!target.requests().is_empty(), "the client saw it: {answer:?}");
        assert!(outcome.sent, "{answer:?}: {outcome:?}");
    }
}

/// Where nobody listens there is no connection, and no answer.
pub async fn d4_a_refused_connection_is_told_apart(subject: Subject<dyn Delivery>) {
    let outcome = subject.post(HttpTarget::refusing().await).await;
    assert_eq!(failure(&outcome), Some(FailureKind::Connect), "{outcome:?}");
}

/// What is no URL or no header cannot be sent: a failed attempt, not a panic.
pub async fn d4_what_cannot_be_sent_is_told_apart(subject: Subject<dyn Delivery>) {
    let outcome = subject.post("http://").await;
    assert_eq!(failure(&outcome), Some(FailureKind::Unsendable), "{outcome:?}");
    let target = HttpTarget::start(Answer::status(200)).await;
    for (name, value) in [("X-Bad", "a\r\nX-Smuggled: b"), ("X Bad", "a"), ("", "a")] {
        let mut request = request(&subject, target.url("/"));
        request.headers = vec![(name.into(), value.into())];
        let outcome = subject.deliver(request).await;
        assert_eq!(failure(&outcome), Some(FailureKind::Unsendable), "{name:?}: {outcome:?}");
    }
    assert_eq!(target.requests().len(), 0, "the client saw nothing");
}

async fn asked_back(
    subject: &Subject<dyn Delivery>,
    status: u16,
    value: &str,
) -> Option<RetryAfter> {
    let answer = Answer::status(status).header("Retry-After", value);
    let target = HttpTarget::start(answer).await;
    retry_after(subject.post(target.url("/")).await)
}

/// `Retry-After` in seconds.
pub async fn d5_seconds_are_reported(subject: Subject<dyn Delivery>) {
    for status in [429, 503, 200] {
        for seconds in [0, 1, 120, 86_400] {
            let reported = asked_back(&subject, status, &seconds.to_string()).await;
            let expected = RetryAfter::Delay(Duration::from_secs(seconds));
            assert_eq!(reported, Some(expected), "{status}: {seconds}");
        }
    }
}

/// `Retry-After` as a date, also one that has passed.
pub async fn d5_dates_are_reported(subject: Subject<dyn Delivery>) {
    let dates = [
        ("Fri, 31 Dec 1999 23:59:59 GMT", 946_684_799),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000),
        ("Thu, 29 Feb 2052 00:00:00 GMT", 2_592_777_600),
    ];
    for (date, seconds) in dates {
        let expected = RetryAfter::At(Timestamp::from_unix_seconds(seconds));
        assert_eq!(asked_back(&subject, 503, date).await, Some(expected), "{date}");
    }
}

/// A `Retry-After` that cannot be understood is left out, and so is one that is not there.
pub async fn d5_nonsense_is_left_out(subject: Subject<dyn Delivery>) {
    for nonsense in ["soon", "", "-1", "1.5", "2 minutes", "Fri, 31 Foo 1999 23:59:59 GMT"] {
        assert_eq!(asked_back(&subject, 503, nonsense).await, None, "{nonsense:?}");
    }
    let target = HttpTarget::start(Answer::status(503)).await;
    assert_eq!(retry_after(subject.post(target.url("/")).await), None);
}

/// A body within the limit is kept whole.
pub async fn d6_a_short_body_is_kept_whole(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200).body("thanks")).await;
    for limit in [6, 7, 1024] {
        let mut request = request(&subject, target.url("/"));
        request.excerpt_limit = limit;
        assert_eq!(excerpt(subject.deliver(request).await), "thanks", "limit {limit}");
    }
}

/// Of a long body the beginning is kept, up to the limit.
pub async fn d6_a_long_body_is_cut(subject: Subject<dyn Delivery>) {
    let body: Vec<u8> = (0..1 << 20).map(|index| b'a' + (index % 26) as u8).collect();
    let target = HttpTarget::start(Answer::status(200).body(body.clone())).await;
    for limit in [0, 1, 100, 65_536] {
        let mut request = request(&subject, target.url("/"));
        request.excerpt_limit = limit;
        let kept = excerpt(subject.deliver(request).await);
        assert!(kept == body[..limit], "{} bytes kept, the limit is {limit}", kept.len());
    }
}

/// A body without end is read up to the limit, and the answer counts.
pub async fn d6_an_endless_body_is_not_read_on(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::flood()).await;
    let mut request = request(&subject, target.url("/"));
    request.excerpt_limit = 20_000;
    request.timeout = subject.ticks(10);
    let outcome = subject.deliver(request).await;
    assert_eq!(status(&outcome), Some(200), "{outcome:?}");
    assert_eq!(excerpt(outcome).len(), 20_000);
}

/// Whether a body is all there is, is known up to the last byte.
pub async fn d10_a_whole_body_is_told_from_a_part(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200).body("thanks")).await;
    target.on("/long", Answer::status(200).body(vec![b'x'; 40_000]));
    target.on("/none", Answer::status(204));
    target.on("/unmeasured", Answer::raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthanks"));
    let tried = [
        ("/", 6, true),
        ("/", 1024, true),
        ("/", 5, false),
        ("/", 0, false),
        ("/long", 40_000, true),
        ("/long", 39_999, false),
        ("/none", 1, true),
        ("/unmeasured", 7, true),
    ];
    for (path, limit, whole) in tried {
        let mut request = request(&subject, target.url(path));
        (request.excerpt_limit, request.needs_whole) = (limit, true);
        let outcome = subject.deliver(request).await;
        assert_eq!(outcome.whole, whole, "{path}, limit {limit}: {outcome:?}");
    }
}

/// A body that stalls, breaks off or has no end is not whole.
pub async fn d10_a_body_that_does_not_end_is_not_whole(subject: Subject<dyn Delivery>) {
    for answer in [Answer::cut(), Answer::hang_after_head(), Answer::flood()] {
        let target = HttpTarget::start(answer.clone()).await;
        let mut request = request(&subject, target.url("/"));
        (request.timeout, request.needs_whole) = (subject.ticks(5), true);
        let outcome = subject.deliver(request).await;
        assert!(!outcome.whole, "{answer:?}: {outcome:?}");
    }
}
