//! What forms do, and what they say when they do not.

use flare_core::model::SubscriptionStatus;
use http::Method;

use crate::support::Pages;

#[tokio::test]
async fn a_resource_and_a_subscription_are_made_changed_and_deleted_by_forms() {
    let pages = Pages::open();
    let made = pages.post("resources/new", "endpoint=http://a.example/u/%7Bid%7D&field=rev").await;
    let resource =
        made.sent_to().strip_prefix("../resources/").unwrap().split('?').next().unwrap().to_owned();
    let path = format!("resources/{resource}/subscriptions/new");
    let form = "url=https://c.example/%7Bid%7D&method=PUT&secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\
                &more=%7B%22delivery%22:%7B%22concurrency%22:3%7D%7D";
    let made = pages.post(&path, form).await;
    let id = made
        .sent_to()
        .strip_prefix("../../../subscriptions/")
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let current = async || pages.flare.subscription(id.parse().unwrap()).await.unwrap();
    assert_eq!(current().await.spec.delivery().concurrency(), Some(3));

    let page = pages.get(&format!("subscriptions/{id}")).await;
    assert!(page.shown(200).contains("https://c.example/{id}") && !page.text.contains("MfKQ9"));
    let form = pages.get(&format!("subscriptions/{id}/edit")).await;
    assert!(form.shown(200).contains("It has 1, never shown") && !form.text.contains("MfKQ9"));
    let generation = current().await.generation.get();
    let edit = format!("url=https://d.example/&method=POST&generation={generation}");
    let path = format!("subscriptions/{id}/edit");
    assert_eq!(pages.post(&path, &edit).await.sent_to(), format!("../{id}?done=changed"));
    let changed = current().await;
    assert_eq!(changed.spec.endpoint().url().unwrap().as_str(), "https://d.example/");
    assert_eq!(changed.spec.signing().unwrap().count(), 1, "secrets are kept");
    // Somebody else was faster.
    let outdated = pages.post(&path, &edit).await;
    assert!(outdated.shown(409).contains("has changed since it was read"));

    for (step, status) in
        [("pause", SubscriptionStatus::Paused), ("resume", SubscriptionStatus::Active)]
    {
        let asked = pages.get(&format!("subscriptions/{id}/{step}")).await;
        assert!(asked.shown(200).contains("<form"), "{step}");
        let before = current().await.status;
        assert_ne!(before, status, "asking changes nothing");
        pages.post(&format!("subscriptions/{id}/{step}"), "").await.sent_to();
        assert_eq!(current().await.status, status);
        let again = pages.get(&format!("subscriptions/{id}/{step}")).await;
        assert!(again.shown(200).contains("This cannot be done now."), "{step}");
    }
    let asked = pages.get(&format!("resources/{resource}/delete")).await;
    assert!(asked.shown(200).contains("It has 1 subscription and 0 consumers"));
    let refused = pages.post(&format!("resources/{resource}/delete"), "").await;
    refused.shown(409);
    let deleted = pages.post(&format!("subscriptions/{id}/delete"), "").await;
    assert_eq!(deleted.sent_to(), "../../subscriptions?done=deleted");
    pages.get(&format!("subscriptions/{id}")).await.shown(404);
    pages.post(&format!("resources/{resource}/delete"), "").await.sent_to();
    pages.get(&format!("resources/{resource}")).await.shown(404);
}

#[tokio::test]
async fn what_is_wrong_is_said_beside_what_was_written() {
    let pages = Pages::open();
    let wrong = pages.post("resources/new", "endpoint=http://a.example/%22x&field=rev").await;
    assert!(wrong.shown(400).contains("<code>endpoint</code>"));
    assert!(wrong.text.contains("value=\"http://a.example/&#34;x\""), "{}", wrong.text);
    let users = pages.users().await.id;
    let path = format!("resources/{users}/subscriptions/new");
    for (form, field) in [
        ("url=ftp://x/", "endpoint.url"),
        ("url=http://x/&more=%7B%22delivery%22:%7B%22lanes%22:0%7D%7D", "delivery.lanes"),
        ("url=http://x/&filter=document.", "filter"),
        ("url=http://x/&more=%7B%22nonsense%22:1%7D", "nonsense"),
    ] {
        let wrong = pages.post(&path, form).await;
        assert!(
            wrong.shown(400).contains(&format!("<code>{field}</code>")),
            "{form}: {}",
            wrong.text
        );
    }
    let none = "0192f0e0-0000-7000-8000-000000000000";
    let json = format!("json=%7B%22resource%22:%22{none}%22%7D");
    let wrong = pages.post("consumers/new", &json).await;
    assert!(wrong.shown(400).contains("names no source"));
}

#[tokio::test]
async fn documents_are_put_found_and_deleted_by_hand() {
    let pages = Pages::open();
    pages.users().await;
    let url = "http%3A%2F%2Fapi.example.com%2Fusers%2F1";
    let put = pages.post("documents/put", &format!("url={url}&content=%7B%22rev%22:7%7D")).await;
    assert_eq!(put.sent_to(), format!("../documents?url={url}&done=put-created"));
    let page = pages.get(&format!("documents?url={url}")).await;
    assert!(page.shown(200).contains("<dd id=\"revision\">7</dd>"));
    let stale = pages.post("documents/put", &format!("url={url}&content=%7B%22rev%22:6%7D")).await;
    assert!(stale.sent_to().ends_with("done=put-stale"));
    let refused = pages.post("documents/put", &format!("url={url}&content=[]")).await;
    refused.shown(400);
    let asked = pages.get(&format!("documents/delete?url={url}")).await;
    assert!(asked.shown(200).contains("value=\"7\""));
    let deleted = pages.post(&format!("documents/delete?url={url}"), "revision=7").await;
    assert!(deleted.sent_to().ends_with("done=put-deleted"));
    let gone = pages.get(&format!("documents?url={url}")).await;
    assert!(gone.shown(200).contains("No such document is there now"));
    pages.get("documents?url=nonsense").await.shown(400);
    pages.get("documents?url=http://other.example/x").await.shown(404);
}

#[tokio::test]
async fn what_is_no_page_no_form_or_too_large_is_refused_as_a_page() {
    let pages = Pages::open();
    for (path, status) in [
        ("nothing", 404),
        ("resources/nothing", 404),
        ("subscriptions/0192f0e0-0000-7000-8000-000000000000", 404),
        ("subscriptions/0192f0e0-0000-7000-8000-000000000000/explode", 404),
        ("nodes/1/drain", 404),
        ("slots/99999999999/pin", 404),
        ("slots/99999/pin", 404),
        ("sign-out", 405),
    ] {
        let page = pages.get(path).await;
        assert!(page.shown(status).starts_with("<!doctype html>"), "{path}");
    }
    let same = ("sec-fetch-site", "same-origin");
    let json = [same, ("content-type", "application/json")];
    pages.ask(Method::POST, "try", &json[..1], &"x".repeat(2 << 20)).await.shown(413);
    pages.ask(Method::DELETE, "resources", &json[..1], "").await.shown(405);
}
