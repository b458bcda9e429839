//! Where the pages are, and that all their links lead to each other wherever that is.

use axum::Router;
use axum::routing::get;
use flare_console::{Console, router};

use crate::support::{Pages, flare};

#[tokio::test]
async fn the_pages_are_below_any_prefix_of_a_router_with_any_state() {
    let (one, state) = (flare(), String::from("a host's own"));
    let host = Router::new()
        .route("/", get(async || "the host's"))
        .nest("/a/b", router(one.clone()))
        .nest_service("/c", Console::new(one.clone()).router::<()>())
        .with_state(state);
    let pages = Pages::of(one, host);
    for (path, to) in [("/a/b", "b/overview"), ("/c", "c/overview"), ("/c/", "overview")] {
        assert_eq!(pages.get(path).await.sent_to(), to, "{path}");
    }
    for prefix in ["/a/b", "/c"] {
        let page = pages.get(&format!("{prefix}/overview")).await;
        assert!(page.shown(200).contains("href=\"assets/console.css?"), "{prefix}");
        let page = pages.get(&format!("{prefix}/resources/new")).await;
        assert!(page.shown(200).contains("href=\"../assets/console.css?"), "{prefix}");
    }
}

#[tokio::test]
async fn no_link_knows_the_prefix_or_another_place() {
    let pages = Pages::open();
    let users = pages.users().await.id;
    for path in [
        "overview",
        "subscriptions",
        "resources",
        "documents",
        "consumers",
        "nodes",
        "slots",
        "jobs",
        "log",
        "try",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([
        format!("resources/{users}"),
        format!("resources/{users}/delete"),
        "none".to_owned(),
    ]) {
        let page = pages.get(&path).await;
        for attribute in ["href=\"", "src=\"", "action=\""] {
            for link in page.text.split(attribute).skip(1) {
                let link = link.split('"').next().unwrap();
                assert!(!link.starts_with('/') && !link.contains("://"), "{path}: {link}");
                assert!(!link.starts_with("console/"), "{path}: {link}");
            }
        }
        for inline in ["<style", " style=", "onclick", "javascript:", "<script>"] {
            assert!(!page.text.contains(inline), "{path} has {inline}");
        }
    }
}

#[tokio::test]
async fn what_pages_load_is_served_and_kept() {
    let pages = Pages::open();
    for (name, begins) in [("console.css", "/*"), ("live.js", "//"), ("icon.svg", "<svg")] {
        let asset = pages.get(&format!("assets/{name}")).await;
        assert!(asset.shown(200).starts_with(begins), "{name}");
    }
    assert_eq!(pages.get("assets/tabler.css").await.status, 200);
    pages.get("assets/../Cargo.toml").await.shown(404);
    pages.get("assets/other.css").await.shown(404);
}
