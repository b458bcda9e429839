//! Takes the beginning of a request; gives what it is about and how long it is.

/// The round of a request whose body says what it is about.
pub(super) const BATCH: u64 = 0;

/// What a request to the sink says: `POST /<round>/<subscription>/<document>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) round: u64,
    pub(super) subscription: usize,
    pub(super) document: usize,
    /// Bytes of head and body together.
    pub(super) length: usize,
}

/// Reads which documents the body of a request tells of that tells of many, and in which rounds. Knows the
/// bodies that Flare makes of what is put here, which is enough to count them at little cost.
pub(super) fn told(body: &[u8]) -> Result<Vec<(usize, u64)>, String> {
    const ID: &str = "{\"id\":\"http://api.example.com/items/";
    const REVISION: &str = "\"revision\":";
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u64>().map_err(|error| format!("no number: {error}"))
    };
    let one = |envelope: &str| {
        let (_, revision) = envelope.split_once(REVISION).ok_or("there is no revision")?;
        Ok((number(envelope)? as usize, number(revision)?))
    };
    text.split(ID).skip(1).map(one).collect()
}

impl Head {
    /// Reads a head; none if it is not complete yet.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let path = line.strip_prefix("POST /").and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
        let mut numbers = path.unwrap_or_default().split('/').map(str::parse::<u64>);
        let (Some(Ok(round)), Some(Ok(subscription)), Some(Ok(document))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return Err(format!("the sink does not know {line:?}"));
        };
        let is_length = |name: &str| name.eq_ignore_ascii_case("content-length");
        let body = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| is_length(name))
            .and_then(|(_, value)| value.trim().parse::<usize>().ok())
            .ok_or("the request has no content-length")?;
        Ok(Some(Self {
            round,
            subscription: subscription as usize,
            document: document as usize,
            length: end + 4 + body,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_body_of_many_tells() {
        let one = r#"{"id":"http://api.example.com/items/7","action":"update","revision":3,"x":1}"#;
        let body = format!("{{\"notifications\":[{one},{}]}}", one.replace("/7", "/12"));
        assert_eq!(told(body.as_bytes()), Ok(vec![(7, 3), (12, 3)]));
        assert_eq!(told(b"{}"), Ok(vec![]));
        assert!(told(&one.as_bytes()[..50]).is_err());
    }

    #[test]
    fn reads_whole_heads_only() {
        let request = b"POST /7/3/42 HTTP/1.1\r\nhost: h\r\nContent-Length: 2\r\n\r\n{}";
        let head = Head { round: 7, subscription: 3, document: 42, length: request.len() };
        assert_eq!(Head::parse(request), Ok(Some(head)));
        assert_eq!(Head::parse(&request[..40]), Ok(None));
        for wrong in ["GET / HTTP/1.1\r\n\r\n", "POST /1/2/3 HTTP/1.1\r\nhost: h\r\n\r\n"] {
            assert!(Head::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
