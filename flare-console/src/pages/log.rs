//! What operators and nodes did, newest first: by whom, and to what; all of it, or what was done to one thing.

use askama::Template;
use flare_core::model::{Actor, AuditAction, AuditEntry, AuditSubject};
use flare_http::Problem;

use crate::ask::{Ask, page, page_with};
use crate::fields::query;
use crate::frame::Frame;
use crate::lists::{ENTRIES, Part};
use crate::refusal::{Answer, Refusal};
use crate::show::Now;

#[derive(Template)]
#[template(path = "pages/log.html")]
struct Log {
    frame: Frame,
    now: Now,
    /// What is asked for, as it was written.
    subject: String,
    problem: Option<Problem>,
    entries: Vec<Entry>,
    unreadable: Vec<String>,
    part: Part,
    api: String,
}

struct Entry {
    its: AuditEntry,
    /// The page of what it was done to, if that has one.
    link: Option<String>,
    /// All that was done to the same.
    only: String,
}

impl Entry {
    /// Its name, where somebody said who they are.
    fn name(&self) -> Option<&str> {
        match &self.its.actor {
            Actor::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// The list.
pub(crate) async fn list(ask: Ask) -> Answer {
    let part = Part::asked(&ask.query, &["subject"]);
    let mut shown = Log {
        now: ask.now(),
        api: ask.api(),
        subject: ask.query.text("subject").to_owned(),
        problem: None,
        entries: Vec::new(),
        unreadable: Vec::new(),
        part: part.clone(),
        frame: ask.frame.clone(),
    };
    let subject = match ask.query.given("subject").map(str::parse::<AuditSubject>).transpose() {
        Ok(subject) => subject,
        Err(invalid) => {
            let Refusal(problem) = invalid.into();
            let status = problem.status();
            shown.problem = Some(problem);
            return page_with(status, &shown);
        }
    };
    let listing = ask.flare().audit_log(subject.as_ref(), part.page()).await?;
    shown.part = part.of(listing.total);
    shown.unreadable = listing.unreadable.iter().map(ToString::to_string).collect();
    shown.entries = listing.items.into_iter().map(entry).collect();
    page(&shown)
}

fn entry(its: AuditEntry) -> Entry {
    // What was deleted has no page any more.
    let is_there = its.action != AuditAction::Deleted;
    let link = page_of(&its.subject).filter(|_| is_there);
    Entry { link, only: path(&its.subject), its }
}

/// All that was done to this.
fn path(subject: &AuditSubject) -> String {
    format!("log{}", query([("subject", subject.as_str())]))
}

/// Where the thing itself is.
fn page_of(subject: &AuditSubject) -> Option<String> {
    // A store may hold what a newer version wrote: an id is not yet a part of a path.
    let of = |list: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        subject.id().bytes().all(plain).then(|| format!("{list}/{}", subject.id()))
    };
    match subject.kind() {
        "resource" => of("resources"),
        "subscription" => of("subscriptions"),
        "consumer" => of("consumers"),
        "node" => Some("nodes".to_owned()),
        "slot" => {
            let slot: u32 = subject.id().parse().ok()?;
            let number = (slot / ENTRIES + 1).to_string();
            Some(format!("slots{}", query([("page", number.as_str())])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_page_is_linked() {
        for (subject, link) in [
            (
                "subscription/0192f0e0-0000-7000-8000-000000000000",
                Some("subscriptions/0192f0e0-0000-7000-8000-000000000000"),
            ),
            ("subscription/../x?y", None),
            ("slot/24", Some("slots?page=1")),
            ("slot/25", Some("slots?page=2")),
            ("slot/many", None),
            ("node/1", Some("nodes")),
            ("sign-in/no-token", None),
            ("wall/north", None),
        ] {
            assert_eq!(page_of(&subject.parse().unwrap()).as_deref(), link, "{subject}");
        }
        assert_eq!(path(&AuditSubject::sign_in("a&b")), "log?subject=sign-in%2Fa%26b");
    }
}
