//! Who is let in, what they may do, and what is refused whoever asks.

use flare_http::auth::Scope;
use http::Method;
use http::header::ORIGIN;

use crate::support::{ADMIN, Pages, READ, WRITE};

#[tokio::test]
async fn without_a_token_one_signs_in_first_and_goes_on_from_there() {
    let pages = Pages::with_token(None);
    let asked = pages.get("resources/new?x=1").await;
    assert_eq!(asked.sent_to(), "../sign-in?to=resources%2Fnew%3Fx%3D1");
    let form = pages.get("sign-in?to=resources%2Fnew%3Fx%3D1").await;
    assert!(form.shown(200).contains("value=\"resources/new?x=1\""), "{form:?}");

    let wrong = pages.post("sign-in", "token=a-token-nobody-has&to=nodes").await;
    assert!(wrong.shown(401).contains("This token is not known."));
    assert!(wrong.cookie.is_none() && !wrong.text.contains("a-token-nobody-has"));

    let right = pages.post("sign-in", &format!("token={ADMIN}&to=nodes")).await;
    assert_eq!(right.sent_to(), "nodes");
    let cookie = format!("flare-token={ADMIN}; HttpOnly; SameSite=Strict");
    assert_eq!(right.cookie.as_deref(), Some(cookie.as_str()));
    let away = pages.post("sign-in", &format!("token={ADMIN}&to=//evil.example")).await;
    assert_eq!(away.sent_to(), "overview");

    let from = [(ORIGIN.as_str(), "https://flare.example")];
    let safe = pages.ask(Method::POST, "sign-in", &from, &format!("token={ADMIN}")).await;
    assert!(safe.cookie.unwrap().ends_with("; Secure"));
    let out = pages.as_holder(ADMIN).post("sign-out", "").await;
    assert!(out.cookie.unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn a_token_that_is_not_known_any_more_asks_for_another() {
    let pages = Pages::with_token(Some("a-token-of-yesterday"));
    assert_eq!(pages.get("nodes").await.sent_to(), "sign-in?to=nodes&why=expired");
    // A form is not sent again by that.
    assert_eq!(pages.post("resources/new", "").await.sent_to(), "../sign-in?why=expired");
}

#[tokio::test]
async fn where_there_are_no_tokens_nobody_signs_in() {
    let pages = Pages::open();
    assert_eq!(pages.get("sign-in").await.sent_to(), "overview");
    let page = pages.get("overview").await;
    assert!(!page.shown(200).contains("Sign out"));
}

/// Every form there is with what a token has to allow; the last of each is the least that does.
#[tokio::test]
async fn a_form_needs_what_rest_needs() {
    const ID: &str = "0192f0e0-0000-7000-8000-000000000000";
    let pages = Pages::with_token(None);
    // Which of them that is of consumers, REST says.
    let of_rest = |method, path| match Scope::needed(&method, path) {
        Some(Scope::Admin) => ADMIN,
        _ => WRITE,
    };
    let mut forms = vec![
        ("resources/new".to_owned(), ADMIN),
        (format!("resources/{ID}/delete"), ADMIN),
        (format!("resources/{ID}/subscriptions/new"), WRITE),
        (format!("subscriptions/{ID}/edit"), WRITE),
        ("documents/put".to_owned(), WRITE),
        ("documents/delete".to_owned(), WRITE),
        ("consumers/new".to_owned(), of_rest(Method::POST, "/consumers")),
        (format!("consumers/{ID}/edit"), of_rest(Method::PUT, "/consumers/c")),
        (format!("nodes/{ID}/drain"), ADMIN),
        ("slots/1/pin".to_owned(), ADMIN),
        ("try".to_owned(), WRITE),
    ];
    let steps = "pause resume retry demand backfill cancel-backfill resync cancel-resync replay pin unpin delete";
    forms.extend(steps.split(' ').map(|step| (format!("subscriptions/{ID}/{step}"), WRITE)));
    forms.push((format!("consumers/{ID}/delete"), of_rest(Method::DELETE, "/consumers/c")));
    let steps = "pause resume retry-rejects";
    forms.extend(steps.split(' ').map(|step| (format!("consumers/{ID}/{step}"), WRITE)));
    for (form, least) in forms {
        let holders: &[&'static str] = if least == ADMIN { &[READ, WRITE] } else { &[READ] };
        for holder in holders {
            let refused = pages.as_holder(holder).post(&form, "").await;
            let said = refused.shown(403);
            assert!(said.contains("and this needs a token that allows"), "{form} {holder}: {said}");
        }
        let asked = pages.as_holder(READ).get(&form).await;
        assert_eq!(asked.status, if form == "try" { 200 } else { 403 }, "{form}");
        let taken = pages.as_holder(least).post(&form, "").await;
        assert_ne!(taken.status, 403, "{form}: {}", taken.text);
    }
}

#[tokio::test]
async fn who_may_only_look_is_offered_nothing_else() {
    let pages = Pages::with_token(Some(READ));
    let users = pages.users().await.id;
    for path in ["overview".to_owned(), "resources".to_owned(), format!("resources/{users}")] {
        let page = pages.get(&path).await;
        for offer in ["New resource", "Create the first", "New subscription", "Delete"] {
            assert!(!page.shown(200).contains(offer), "{path}: {offer}");
        }
    }
    let asked = pages.get(&format!("resources/{users}/delete")).await;
    assert!(asked.shown(403).contains("allows read"));
    let offered = pages.as_holder(ADMIN).get(&format!("resources/{users}")).await;
    assert!(offered.shown(200).contains("New subscription"));
}

#[tokio::test]
async fn what_another_site_sends_is_refused_and_not_done() {
    for pages in [Pages::open(), Pages::with_token(Some(ADMIN))] {
        let users = pages.users().await.id;
        let path = format!("resources/{users}/delete");
        let forged: [&[(&str, &str)]; 5] = [
            &[],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("origin", "http://flare.example"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://flare.example"), ("sec-fetch-site", "same-site")],
        ];
        for headers in forged {
            let refused = pages.ask(Method::POST, &path, headers, "").await;
            assert!(
                refused.shown(403).contains("not sent from a page of this console"),
                "{headers:?}"
            );
        }
        assert!(pages.flare.resource(users).await.is_ok());
        // Signing somebody else in is a change, too.
        let refused =
            pages.ask(Method::POST, "sign-in", &[("origin", "http://evil.example")], "").await;
        refused.shown(403);
        let own = [("sec-fetch-site", "same-origin"), ("origin", "http://behind.a.proxy")];
        assert_eq!(pages.ask(Method::POST, &path, &own, "").await.status, 303);
        assert!(pages.flare.resource(users).await.is_err());
    }
}
