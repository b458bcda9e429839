//! `[connections]` in the program's file: what it starts with, what stops it, and consumers that name one of them.

use std::fs;

use crate::common::{Folder, IN_MEMORY, Server, flare, id, run};

/// A broker that is away, and one that speaks TLS.
const TWO: &str = "[connections.away]\nuri = \"amqp://flare:hush-1@127.0.0.1:1/orders\"\ntimeout = \"5s\"\n\
                   [connections.main]\nuri = \"amqps://flare@mq.example.com\"\npassword = \"hush-2\"\n";

/// The path of a file in the folder that says this.
fn file(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_server_starts_with_brokers_that_are_away_and_shows_no_password() {
    let folder = Folder::new("connections");
    let file = file(&folder, "flare.toml", TWO);
    let (code, shown, errors) = run(&mut flare(&["config", "-c", &file]));
    assert_eq!(code, 0, "{errors}");
    for line in [
        "[connections.away]",
        "amqp://flare:***@127.0.0.1:1/orders",
        "password = \"***\"",
        "\"5s\"",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("hush"), "{shown}");
    let mut server = Server::start(&["-c", &file]);
    server.assert_well();
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    assert!(!server.log().contains("WARN") && !server.log().contains("hush"), "{}", server.log());
}

#[test]
fn slips_in_a_connection_end_with_code_2_and_name_its_key() {
    let folder = Folder::new("connection-slips");
    let no_pem = file(&folder, "no.pem", "hush");
    let trusting = |file: &str| format!("uri = \"amqps://mq\"\nca-file = \"{file}\"");
    let (missing, empty) = (trusting("/nowhere/ca.pem"), trusting(&no_pem));
    for (name, text, says) in [
        (
            "x",
            "url = \"amqp://a:hush@mq\"",
            "connections.x.url is no key; did you mean connections.x.uri?",
        ),
        ("x", "uri = \"http://a:hush@mq\"", "connections.x.uri must begin with \"amqp://\""),
        (
            "x",
            "uri = \"amqp://a:hush@mq:port\"",
            "connections.x.uri is no amqp:// or amqps:// address",
        ),
        ("x", "heartbeat = \"5s\"", "connections.x.uri must begin with \"amqp://\""),
        ("X", "uri = \"amqp://mq\"", "connections.X must be called by 1 to 64 of a-z 0-9"),
        ("x", &missing, "connections.x.ca-file: cannot read /nowhere/ca.pem"),
        ("x", &empty, "no.pem has no certificate in PEM"),
    ] {
        let file = file(&folder, "flare.toml", &format!("[connections.{name}]\n{text}"));
        let mut command = flare(&["start", "--addr", "127.0.0.1:0", "-c", &file]);
        let (code, _, errors) = run(command.args(IN_MEMORY));
        assert_eq!(code, 2, "{text}: {errors}");
        assert!(errors.contains(says) && !errors.contains("hush"), "{text}: {errors}");
    }
}

#[test]
fn a_consumer_names_a_connection_and_its_status_says_that_the_broker_is_away() {
    let folder = Folder::new("connection-away");
    let server = Server::start(&["-c", &file(&folder, "flare.toml", TWO)]);
    let users = server.users();
    let (status, refused) =
        server.consume(&users, r#""rabbitmq":{"connection":"other","queue":"users"}"#);
    assert!(status == 400 && refused.contains("rabbitmq.connection"), "{status}: {refused}");
    for (source, field) in [
        (r#""sqs":{"queue":"users","endpoint":"http://169.254.169.254"}"#, "delivery.guard.allow"),
        (r#""kinesis":{"stream":"users","endpoint":"http://10.0.0.1"}"#, "kinesis.endpoint"),
        (r#""kinesis":{"stream":"users","endpoint":"http://10.0.0.1"}"#, "consumers.aws.endpoints"),
        (r#""kafka":{"topic":"users"}"#, "known are kinesis, rabbitmq, sqs"),
    ] {
        let (status, refused) = server.consume(&users, source);
        assert!(status == 400 && refused.contains(field), "{status}: {refused}");
    }

    let (status, consumer) =
        server.consume(&users, r#""rabbitmq":{"connection":"away","queue":"users"}"#);
    assert_eq!(status, 201, "{consumer}");
    let path = format!("/consumers/{}/status", id(&consumer));
    let shown = server.until(&path, |_, body| body.contains("lastError"));
    assert!(shown.contains("rabbitmq") && shown.contains("unavailable"), "{shown}");
    server.assert_well();
    for text in [consumer, shown, server.get("/consumers").1, server.log()] {
        assert!(!text.contains("hush"), "{text}");
    }
}
