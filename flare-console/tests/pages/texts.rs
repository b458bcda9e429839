//! What others wrote is shown as text, whatever it is.

use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionSpec};

use crate::support::Pages;

const HOSTILE: &str = "<script>alert('\"&')</script>";

async fn subscribed(flare: &Flare, resource: flare_core::model::ResourceId) -> String {
    let filter = format!("document.a == '{}'", HOSTILE.replace('\'', ""));
    let spec =
        SubscriptionSpec::post("http://c.example/%3Cb%3E/{id}").filter(filter).build().unwrap();
    flare.create_subscription(resource, spec).await.unwrap().id.to_string()
}

#[tokio::test]
async fn nothing_that_somebody_wrote_is_taken_for_html() {
    let pages = Pages::open();
    let users = NewResource::new("http://api.example.com/users/{id}").change_field("<i>rev</i>");
    let users = pages.flare.create_resource(users).await.unwrap().id;
    let id = subscribed(&pages.flare, users).await;
    let url = "http://api.example.com/users/1";
    let content = serde_json::json!({ "<i>rev</i>": 1, "name": HOSTILE });
    pages.flare.put_document(url, &content).await.unwrap();
    let given: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let mut shown = 0;
    for path in [
        "resources".to_owned(),
        format!("resources/{users}?search={given}"),
        format!("resources/{given}"),
        format!("subscriptions/{id}"),
        format!("subscriptions/{id}/edit"),
        format!("subscriptions?search={given}&status={given}&order={given}&page={given}"),
        format!("subscriptions/{id}/replay?letter={given}"),
        format!("documents?url={url}"),
        format!("documents?url={given}"),
        format!("documents/put?url={given}"),
        format!("consumers/new?resource={given}"),
        format!("nodes/{given}/drain"),
        format!("slots?only={given}"),
        format!("overview?done={given}"),
        format!("sign-in?to={given}"),
        given.clone(),
    ] {
        let page = pages.get(&path).await;
        for raw in ["<script>alert", "<i>rev", "'\"&'", "onerror=alert(1)>"] {
            assert!(!page.text.contains(raw), "{path} has {raw}");
        }
        shown += usize::from(page.text.contains("&#60;script&#62;"));
    }
    assert!(shown > 5, "it is shown as what it is: {shown}");
}
