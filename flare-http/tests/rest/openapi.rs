//! The description: kept in the repository, served, and complete.

use std::path::Path;

use crate::schema::Spec;
use crate::support::Server;

/// `FLARE_WRITE_OPENAPI=1 cargo test -p flare-http --test rest openapi` writes the file anew.
#[test]
fn the_file_in_the_repository_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let mut made = flare_http::openapi();
    // What a feature adds is served where it is built in, and not in the file.
    made.paths.paths.remove("/debug/profile");
    let made = made.to_pretty_json().unwrap() + "\n";
    if std::env::var_os("FLARE_WRITE_OPENAPI").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "flare-http/openapi.json is not what the code says. To write it anew:\n\
         FLARE_WRITE_OPENAPI=1 cargo test -p flare-http --test rest openapi"
    );
}

#[tokio::test]
async fn it_is_served() {
    let server = Server::start().await;
    let served = server.get("/openapi.json").await.is(200).json();
    assert_eq!(served, Spec::load().0);
    assert_eq!(served["openapi"], "3.1.0");
}

#[test]
fn every_operation_has_a_name_of_its_own_and_every_reference_leads_somewhere() {
    let spec = Spec::load().0;
    let mut names = std::collections::BTreeSet::new();
    for item in spec["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} twice");
            assert!(operation["summary"].is_string(), "{name} has no summary");
        }
    }
    assert_eq!(names.len(), 60 + usize::from(cfg!(feature = "profile")));
    let text = spec.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(spec.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
}

#[tokio::test]
async fn every_route_but_documents_refuses_unknown_parameters() {
    let server = Server::start().await;
    let users = server.resource("users").await;
    let one = server.subscription(&users, "http://c.example/{id}").await;
    let (rid, id) = (users.rsplit('/').next().unwrap(), one.rsplit('/').next().unwrap());
    for (path, item) in Spec::load().0["paths"].as_object().unwrap() {
        if path.starts_with("/documents") {
            continue;
        }
        // A consumer's id is not looked for before the query is read.
        let path = path.replace("{rid}", rid).replace("{cid}", rid).replace("{id}", id);
        let path = path.replace("{slot}", "0");
        let path = path + "?nonsense=1";
        for method in item.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let body = matches!(&*method, "POST" | "PUT").then_some("{}");
            server.call(&method, &path, body).await.refuses(400, "nonsense");
        }
    }
}
