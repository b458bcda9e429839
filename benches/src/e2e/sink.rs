//! Takes notifications over HTTP/1.1 as a client would, in a process of its own, so that its CPU
//! time is not counted as the sender's; notes when each came. Told what to expect on its standard
//! input, tells what came on its standard output, in lines.

use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::head::{BATCH, Head, told};
use crate::Result;

/// The command by which `e2e` starts the process.
pub(crate) const SINK: &str = "e2e-sink";

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";

/// Serves until its standard input ends; told how many clients fail.
pub(crate) fn serve(args: &[&str]) -> Result<()> {
    let failing = args.first().map_or(Ok(0), |failing| failing.parse())?;
    // One thread is far from being the bottleneck: it costs a fraction of what the sender does.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let expected = Arc::new(Mutex::new(Expected { failing, ..Expected::default() }));
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        say(&listener.local_addr()?.port().to_string());
        let ended = tokio::task::spawn_blocking({
            let expected = Arc::clone(&expected);
            move || obey(&expected)
        });
        tokio::spawn(accept(listener, expected));
        ended.await??;
        Ok(())
    })
}

/// What is to come in a round, and what came.
#[derive(Default)]
struct Expected {
    round: u64,
    /// Clients that take what they are told.
    subscriptions: usize,
    documents: usize,
    /// Of how many documents one changes; it is numbered by that many.
    step: usize,
    /// Clients after those that fail; the same in every round, for they are told again and again.
    failing: usize,
    /// When each came first, in nanoseconds since 1970; zero if not yet. By subscription, then
    /// by document.
    arrivals: Vec<u64>,
    missing: usize,
    duplicates: usize,
}

impl Expected {
    /// The next round.
    fn next(&self, round: u64, subscriptions: usize, documents: usize, step: usize) -> Self {
        let missing = subscriptions * documents;
        let (arrivals, failing) = (vec![0; missing], self.failing);
        Self { round, subscriptions, documents, step, failing, arrivals, missing, duplicates: 0 }
    }

    /// Notes a notification; gives its client's answer, none if it hangs.
    fn note(&mut self, head: &Head) -> Option<&'static [u8]> {
        if head.subscription >= self.subscriptions {
            let fails = head.subscription - self.subscriptions < self.failing;
            return fails.then_some(FAILED);
        }
        let document = head.document / self.step.max(1);
        let place = head.subscription * self.documents + document;
        // Latecomers of earlier rounds are answered, but are none of this one's business.
        if head.round == self.round && document < self.documents {
            match self.arrivals[place] {
                0 => {
                    self.arrivals[place] = super::now_nanos();
                    self.missing -= 1;
                    if self.missing == 0 {
                        say("complete");
                    }
                }
                _ => self.duplicates += 1,
            }
        }
        Some(TAKEN)
    }

    fn tell(&self) {
        let mut line = self.duplicates.to_string();
        for arrival in &self.arrivals {
            line.push(' ');
            line.push_str(&arrival.to_string());
        }
        say(&line);
    }
}

fn lock(expected: &Mutex<Expected>) -> MutexGuard<'_, Expected> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever does not listen any more has ended, and so will this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Does what the standard input says, until it ends.
fn obey(expected: &Mutex<Expected>) -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<usize>().unwrap_or_default();
        match words.as_slice() {
            ["expect", round, subscriptions, documents, step] => {
                let mut expected = lock(expected);
                *expected = expected.next(
                    number(round) as u64,
                    number(subscriptions),
                    number(documents),
                    number(step),
                );
                drop(expected);
                say("ready");
            }
            ["tell"] => lock(expected).tell(),
            _ => return Err(std::io::Error::other(format!("the sink does not know {line}"))),
        }
    }
    Ok(())
}

async fn accept(listener: TcpListener, expected: Arc<Mutex<Expected>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, Arc::clone(&expected)));
    }
}

/// Answers the requests of one connection; stays silent for ever to one that is to hang.
async fn answer(mut stream: TcpStream, expected: Arc<Mutex<Expected>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    loop {
        while let Some(head) = Head::parse(&buffer).map_err(std::io::Error::other)? {
            if buffer.len() < head.length {
                break;
            }
            let request: Vec<u8> = buffer.drain(..head.length).collect();
            let answer = match head.round {
                BATCH => note_all(&expected, &head, &request).map_err(std::io::Error::other)?,
                _ => lock(&expected).note(&head),
            };
            if let Some(answer) = answer {
                stream.write_all(answer).await?;
            }
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Notes all that a request of many tells; gives the answer.
fn note_all(
    expected: &Mutex<Expected>,
    head: &Head,
    request: &[u8],
) -> std::result::Result<Option<&'static [u8]>, String> {
    let mut answer = Some(TAKEN);
    let told = told(request)?;
    let mut expected = lock(expected);
    for (document, round) in told {
        answer = expected.note(&Head { round, document, ..*head });
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_beyond_those_expected_fail_and_the_others_hang() {
        let first = Expected { failing: 1, ..Expected::default() };
        let mut expected = first.next(7, 2, 3, 1).next(8, 2, 3, 1);
        let mut told = |round, subscription, document| {
            expected.note(&Head { round, subscription, document, length: 0 })
        };
        for (round, subscription, document, answer) in [
            (8, 0, 0, Some(TAKEN)),
            (8, 1, 2, Some(TAKEN)),
            (8, 1, 2, Some(TAKEN)),
            (7, 1, 0, Some(TAKEN)),
            (8, 2, 0, Some(FAILED)),
            (7, 2, 0, Some(FAILED)),
            (8, 3, 0, None),
        ] {
            assert_eq!(told(round, subscription, document), answer, "{round} {subscription}");
        }
        assert_eq!((expected.missing, expected.duplicates), (4, 1));
    }

    #[test]
    fn of_many_documents_those_that_change_are_counted() {
        let mut expected = Expected::default().next(8, 1, 2, 100);
        for document in [42, 199, 242] {
            expected.note(&Head { round: 8, subscription: 0, document, length: 0 });
        }
        assert_eq!((expected.missing, expected.duplicates), (0, 0));
    }
}
