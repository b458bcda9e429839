//! What is told of who did what, and of long work.

use axum::{Extension, Router};
use flare_console::Console;
use flare_core::model::{Actor, AuditAction, AuditEntry, ResourceId, SubscriptionSpec};
use flare_core::port::Page;
use flare_http::auth::{Caller, Scope, Tokens};

use crate::support::{ADMIN, Pages, READ, WRITE, flare};

const NEW_RESOURCE: &str = "endpoint=http://a.example/u/%7Bid%7D&field=rev";

async fn told(pages: &Pages) -> Vec<AuditEntry> {
    pages.flare.audit_log(None, Page::new(100, 0)).await.unwrap().items
}

async fn subscribed(pages: &Pages, resource: ResourceId, number: usize) -> String {
    let spec = SubscriptionSpec::post(format!("http://c.example/{number}")).build().unwrap();
    pages.flare.create_subscription(resource, spec).await.unwrap().id.to_string()
}

#[tokio::test]
async fn what_is_done_by_forms_is_told_under_the_name_of_the_token() {
    let pages = Pages::with_token(Some(ADMIN));
    pages.post("resources/new", NEW_RESOURCE).await.sent_to();
    let created = &told(&pages).await[0];
    assert_eq!(created.actor, Actor::named("ann"));
    let resource: ResourceId = created.subject.id().parse().unwrap();
    let id = subscribed(&pages, resource, 1).await;
    pages.as_holder(WRITE).post(&format!("subscriptions/{id}/pause"), "").await.sent_to();
    let paused = &told(&pages).await[0];
    assert_eq!((&paused.actor, &paused.action), (&Actor::named("writer"), &AuditAction::Paused));

    let log = pages.as_holder(READ).get("log").await;
    for shown in [
        "<strong>ann</strong>".to_owned(),
        "<strong>writer</strong>".to_owned(),
        format!("href=\"resources/{resource}\""),
        format!("href=\"subscriptions/{id}\""),
        format!("href=\"log?subject=subscription%2F{id}\""),
    ] {
        assert!(log.shown(200).contains(&shown), "{shown}: {}", log.text);
    }
}

#[tokio::test]
async fn where_nobody_signs_in_it_is_whom_the_host_says() {
    let pages = Pages::open();
    pages.post("resources/new", NEW_RESOURCE).await.sent_to();
    assert_eq!(told(&pages).await[0].actor, Actor::Host);

    let flare = flare();
    let console = Console::new(flare.clone()).router::<()>().layer(Extension(Caller::new("bob")));
    let pages = Pages::of(flare, Router::new().nest("/console", console));
    pages.post("resources/new", NEW_RESOURCE).await.sent_to();
    assert_eq!(told(&pages).await[0].actor, Actor::named("bob"));
}

#[tokio::test]
async fn refused_sign_ins_are_told_and_first_visits_are_not() {
    let pages = Pages::with_token(None);
    pages.get("overview").await.sent_to();
    pages.get("sign-in").await.shown(200);
    assert_eq!(told(&pages).await, []);
    let subjects = async || -> Vec<String> {
        told(&pages).await.iter().map(|entry| entry.subject.to_string()).collect()
    };
    pages.post("sign-in", "token=a-token-nobody-has").await.shown(401);
    assert_eq!(subjects().await, ["sign-in/unknown-token"]);
    pages.post("sign-in", "token=").await.shown(401);
    assert_eq!(subjects().await, ["sign-in/no-token", "sign-in/unknown-token"]);
    pages.as_holder("a-token-of-yesterday").get("nodes").await.sent_to();
    let again = told(&pages).await;
    assert_eq!(again.iter().map(|entry| entry.count).sum::<u64>(), 3);
    assert!(again.iter().all(|entry| entry.action == AuditAction::Refused));

    let log = pages.as_holder(READ).get("log").await;
    assert!(log.shown(200).contains("refused") && log.text.contains("unknown-token"));
    for token in ["nobody-has", "yesterday"] {
        assert!(!log.text.contains(token), "{token}");
    }
}

#[tokio::test]
async fn the_log_is_paged_and_can_be_asked_about_one_thing() {
    let pages = Pages::open();
    let empty = pages.get("log").await;
    assert!(empty.shown(200).contains("curl http://flare.example/log"), "{}", empty.text);
    let users = pages.users().await.id;
    let mut last = String::new();
    for number in 0..30 {
        last = subscribed(&pages, users, number).await;
    }
    let newest = pages.get("log").await;
    assert!(newest.shown(200).contains("1–25 of 31") && newest.text.contains("href=\"?page=2\""));
    assert!(newest.text.contains(&last));
    let rest = pages.get("log?page=2").await;
    assert!(rest.shown(200).contains("26–31 of 31") && !rest.text.contains(&last));

    let page = pages.get(&format!("subscriptions/{last}")).await;
    let path = format!("log?subject=subscription/{last}");
    assert!(page.shown(200).contains(&format!("href=\"../{path}\"")), "{}", page.text);
    pages.post(&format!("subscriptions/{last}/pause"), "").await.sent_to();
    let its = pages.get(&path).await;
    assert_eq!(its.shown(200).matches("data-label=\"What\"").count(), 2, "{}", its.text);
    assert!(its.text.contains("paused") && its.text.contains("created"));
    // What is gone has no page to go to from there.
    pages.post(&format!("subscriptions/{last}/delete"), "").await.sent_to();
    let its = pages.get(&path).await;
    assert_eq!(its.shown(200).matches(&format!("href=\"subscriptions/{last}\"")).count(), 2);
    let resource = pages.get(&format!("resources/{users}")).await;
    assert!(resource.shown(200).contains(&format!("href=\"../log?subject=resource/{users}\"")));

    assert!(pages.get("log?subject=slot/7").await.shown(200).contains("Nothing is told of that."));
    let wrong = pages.get("log?subject=nonsense").await;
    assert!(wrong.shown(400).contains("<code>subject</code>: must be a kind and an id"));
    assert!(wrong.text.contains("value=\"nonsense\"") && !wrong.text.contains("Nothing is told"));
}

#[tokio::test]
async fn long_work_is_listed_with_how_far_it_is() {
    let pages = Pages::open();
    let empty = pages.get("jobs").await;
    assert!(empty.shown(200).contains("curl http://flare.example/jobs"), "{}", empty.text);
    let users = pages.users().await.id;
    pages.flare.put_json("http://api.example.com/users/1", r#"{"rev":1}"#).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..26 {
        let id = subscribed(&pages, users, number).await;
        pages.post(&format!("subscriptions/{id}/backfill"), "").await.sent_to();
        ids.push(id);
    }
    let asked = pages.get("jobs").await;
    assert!(asked.shown(200).contains("1–25 of 26"), "{}", asked.text);
    assert!(asked.text.contains("Backfill: tells a client"));
    let last = pages.get("jobs?page=2").await;
    let found = ids.iter().filter(|id| {
        let link = format!("href=\"subscriptions/{id}\"");
        asked.text.contains(&link) || last.shown(200).contains(&link)
    });
    assert_eq!(found.count(), 26, "each leads to its subscription");
    assert_eq!(last.text.matches("data-label=\"How far\"").count(), 1, "{}", last.text);
}

#[tokio::test]
async fn who_may_look_may_read_both() {
    let pages = Pages::with_token(None);
    for path in ["log", "jobs"] {
        assert_eq!(pages.get(path).await.sent_to(), format!("sign-in?to={path}"));
        let page = pages.as_holder(READ).get(path).await;
        assert!(page.shown(200).contains(&format!("href=\"{path}\" aria-current=\"page\"")));
    }
}

#[tokio::test]
async fn a_name_is_text_whatever_it_is() {
    let (flare, hostile) = (flare(), "<script>alert('\"&')</script>");
    let tokens = Tokens::new().with_named(hostile, ADMIN, Scope::Admin).unwrap();
    let console = Console::new(flare.clone()).auth(tokens).router();
    let pages = Pages::of(flare, Router::new().nest("/console", console)).as_holder(ADMIN);
    pages.post("resources/new", NEW_RESOURCE).await.sent_to();
    let given: String = form_urlencoded::byte_serialize(hostile.as_bytes()).collect();
    pages.flare.note_refused_sign_in(hostile);
    for (path, status) in [
        ("log".to_owned(), 200),
        (format!("log?subject=x/{given}&page={given}"), 200),
        (format!("log?subject={given}"), 400),
        (format!("jobs?page={given}"), 200),
    ] {
        let page = pages.get(&path).await;
        assert!(page.shown(status).contains("&#60;script&#62;"), "{path}");
        for raw in ["<script>alert", "'\"&'"] {
            assert!(!page.text.contains(raw), "{path} has {raw}");
        }
    }
}
