//! Takes what a scripted client should answer; gives the bytes of it.

use std::time::Duration;

/// What a scripted client answers, and how well.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    pub(crate) manner: Manner,
}

#[derive(Debug, Clone)]
pub(crate) enum Manner {
    Whole,
    Close,
    Cut,
    Raw(Vec<u8>),
    Hang,
    HangAfterHead,
    Drip(Duration),
    Flood,
}

impl Answer {
    /// A good answer with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), manner: Manner::Whole }
    }

    /// A redirect to another URL.
    pub fn redirect(status: u16, to: impl Into<String>) -> Self {
        Self::status(status).header("Location", to)
    }

    /// No answer, for ever.
    pub fn hang() -> Self {
        Self::badly(Manner::Hang)
    }

    /// Headers and half of the body, and then nothing more.
    pub fn hang_after_head() -> Self {
        Self::badly(Manner::HangAfterHead).body("half of it")
    }

    /// An endless body, a few bytes at a time.
    pub fn drip(pause: Duration) -> Self {
        Self::badly(Manner::Drip(pause))
    }

    /// An endless body, as fast as it is read.
    pub fn flood() -> Self {
        Self::badly(Manner::Flood)
    }

    /// The connection is closed without an answer.
    pub fn close() -> Self {
        Self::badly(Manner::Close)
    }

    /// The connection is closed in the middle of the body.
    pub fn cut() -> Self {
        Self::badly(Manner::Cut).body("half of it")
    }

    /// Bytes that may be no HTTP at all, and then the end of the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::badly(Manner::Raw(bytes.into()))
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same answer with a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn badly(manner: Manner) -> Self {
        Self { manner, ..Self::status(200) }
    }

    fn head(&self, length: Option<usize>) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // These have no body and must not claim one.
        if let Some(length) = length.filter(|_| !matches!(self.status, 100..200 | 204 | 304)) {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// The whole answer.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head(Some(self.body.len())), self.body.clone()].concat()
    }

    /// The answer up to the middle of its body.
    pub(crate) fn half(&self) -> Vec<u8> {
        let half = self.body[..self.body.len() / 2].to_vec();
        [self.head(Some(self.body.len())), half].concat()
    }

    /// The head of an answer whose body ends with the connection.
    pub(crate) fn endless_head(&self) -> Vec<u8> {
        self.head(None)
    }
}
