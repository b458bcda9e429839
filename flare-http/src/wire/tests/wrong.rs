//! Takes wrong subscriptions; checks that each is refused by the path of the field and a reason.

use flare_core::model::{Invalid, SubscriptionSpec};

use super::{SECRET, at, delivering, read, read_bytes, with};

#[track_caller]
fn refused(what: &str, result: Result<SubscriptionSpec, Invalid>, field: &str, reason: &str) {
    match result {
        Ok(_) => panic!("accepted: {what}"),
        Err(invalid) => {
            assert_eq!(invalid.field(), field, "{what}: {invalid}");
            assert!(invalid.reason().contains(reason), "{what}: {invalid}");
        }
    }
}

#[test]
fn wrong_documents() {
    for (json, field, reason) in [
        ("", "", "must be JSON: EOF"),
        ("{", "", "must be JSON"),
        ("{} x", "", "trailing characters"),
        ("nul", "", "must be JSON"),
        ("null", "", "must be an object, not null"),
        ("[]", "", "must be an object, not a list"),
        ("\"x\"", "", "must be an object, not a string"),
        ("{\"endpoint\":1}", "endpoint", "must be an object, not a number"),
        ("{\"endpoint\":null}", "endpoint.url", "is required"),
        ("{\"a\":1,\"a\":2}", "a", "is given twice"),
        ("{\"url\":\"http://h\"}", "url", "is unknown; known here: endpoint, delivery"),
        ("{\"endpoint\":{\"url\":\"http://h\",\"url\":1}}", "endpoint.url", "is given twice"),
    ] {
        refused(json, read(json), field, reason);
    }
    let invalid = read_bytes(b"\"\xff\"").unwrap_err();
    assert!(invalid.reason().contains("UTF-8"), "{invalid}");
    let deep = format!("{{\"data\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    refused("deep", read(&deep), "data", "must be an object");
    let long = format!("{{\"{}\":1}}", "é".repeat(10_000));
    assert_eq!(read(&long).unwrap_err().field().chars().count(), 257);
}

#[test]
fn wrong_endpoints() {
    for (json, field, reason) in [
        (r#""url":7"#, "url", "must be a string, not a number"),
        (r#""url":"""#, "url", "absolute http or https"),
        (r#""url":"/hook""#, "url", "absolute http or https"),
        (r#""url":"ftp://h/""#, "url", "must be an http or https URL"),
        (r#""url":"http:///x""#, "url", "must have a host"),
        (r#""url":"http://u:p@h/""#, "url", "credentials as a header"),
        (r#""url":"http://h/#f""#, "url", "fragment"),
        (r#""url":"http://h:0/""#, "url", "port from 1 to 65535"),
        (r#""url":"http://h:65536/""#, "url", "port from 1 to 65535"),
        (r#""url":"http://h/a b""#, "url", "absolute http or https"),
        (r#""url":" http://h/""#, "url", "absolute http or https"),
        (r#""url":"http://h/%zz""#, "url", "absolute http or https"),
        (r#""url":"http://bücher.example/""#, "url", "absolute http or https"),
        (r#""url":"http://a!b/""#, "url", "punycode"),
        (r#""url":"http://a..b/""#, "url", "empty labels"),
        (r#""url":"http://1.2.3/""#, "url", "four decimal numbers"),
        (r#""url":"http://2130706433/""#, "url", "four decimal numbers"),
        (r#""url":"http://0x7f.0X1/""#, "url", "four decimal numbers"),
        (r#""url":"http://[v1.x]/""#, "url", "IPv6 address"),
        (r#""url":"http://{id}/""#, "url", "may not choose the host"),
        (r#""url":"http://h{id}/x""#, "url", "may not choose the host"),
        (r#""url":"http://h:{id}/""#, "url", "may not choose the host"),
        (r#""url":"http://{id}@h/""#, "url", "may not choose the host"),
        (r#""url":"{id}://h/""#, "url", "may not choose the host"),
        (r#""url":"{id}""#, "url", "may not choose the host"),
        (r#""url":"http://h/{id""#, "url", "write {{"),
        (r#""url":"http://h/{}""#, "url", "without a name"),
        (r#""url":"http://h","method":"HEAD""#, "method", "GET, POST, PUT, PATCH or DELETE"),
        (r#""url":"http://h","method":1"#, "method", "must be a string"),
        (r#""url":"http://h","headers":[]"#, "headers", "must be an object, not a list"),
        (r#""url":"http://h","headers":{"A":"x"}"#, "headers.A", "list of strings, like"),
        (r#""url":"http://h","headers":{"A":[]}"#, "headers.A", "at least one value"),
        (r#""url":"http://h","headers":{"A":["x",1]}"#, "headers.A[1]", "must be a string"),
        (r#""url":"http://h","headers":{"A":["x\ny"]}"#, "headers.A[0]", "visible ASCII"),
        (r#""url":"http://h","headers":{"A":["\u0000"]}"#, "headers.A[0]", "visible ASCII"),
        (r#""url":"http://h","headers":{"A":["é"]}"#, "headers.A[0]", "visible ASCII"),
        (r#""url":"http://h","headers":{"A":["}"]}"#, "headers.A[0]", "write }}"),
        (r#""url":"http://h","headers":{"A b":["x"]}"#, "headers.A b", "not a header name"),
        (r#""url":"http://h","headers":{"":["x"]}"#, "headers", "not a header name"),
        (r#""url":"http://h","headers":{"A":["1"],"a":["2"]}"#, "headers.a", "different case"),
        (r#""url":"http://h","headers":{"Host":["x"]}"#, "headers.Host", "Flare sets itself"),
        (
            r#""url":"http://h","headers":{"content-length":["1"]}"#,
            "headers.content-length",
            "Flare sets itself",
        ),
        (
            r#""url":"http://h","headers":{"Webhook-Foo":["1"]}"#,
            "headers.Webhook-Foo",
            "Flare sets itself",
        ),
        (
            r#""url":"http://h","headers":{"FLARE-ACTION":["1"]}"#,
            "headers.FLARE-ACTION",
            "Flare sets itself",
        ),
        (
            r#""url":"http://h","headers":{"traceparent":["1"]}"#,
            "headers.traceparent",
            "Flare sets itself",
        ),
        (r#""url":"http://h","actions":{"read":{}}"#, "actions.read", "is unknown"),
        (r#""url":"http://h","actions":{"create":[]}"#, "actions.create", "must be an object"),
        (
            r#""url":"http://h","actions":{"create":{"url":"x"}}"#,
            "actions.create.url",
            "absolute http or https",
        ),
        (
            r#""url":"http://h","actions":{"update":{"method":"X"}}"#,
            "actions.update.method",
            "must be GET",
        ),
        (
            r#""url":"http://h","actions":{"delete":{"headers":{"A":[true]}}}"#,
            "actions.delete.headers.A[0]",
            "must be a string",
        ),
        (r#""url":"http://h","actions":{"delete":{"x":1}}"#, "actions.delete.x", "is unknown"),
        (r#""url":"http://h","verb":"POST""#, "verb", "is unknown"),
        (r#""url":"http://h/\ud800""#, "url", "must be JSON"),
    ] {
        refused(json, at(json), &format!("endpoint.{field}"), reason);
    }
    let long = format!(r#""url":"http://h/{}""#, "a".repeat(2_040));
    refused("long", at(&long), "endpoint.url", "at most 2048 bytes");
}

#[test]
fn too_many_or_too_large_headers() {
    let many: Vec<_> = (0..65).map(|i| format!(r#""A{i}":["x"]"#)).collect();
    let many = format!(r#""url":"http://h","headers":{{{}}}"#, many.join(","));
    refused("65", at(&many), "endpoint.headers", "at most 64 values");
    let values = vec![r#""x""#; 65].join(",");
    let values = format!(r#""url":"http://h","headers":{{"A":[{values}]}}"#);
    refused("65 values", at(&values), "endpoint.headers", "at most 64 values");
    let large = format!(r#""url":"http://h","headers":{{"A":["{}"]}}"#, "x".repeat(8_192));
    refused("large", at(&large), "endpoint.headers", "at most 8192 bytes");
}

#[test]
fn wrong_deliveries() {
    for (json, field, reason) in [
        (r#""success":200"#, "success", "must be a list, not a number"),
        (r#""success":[]"#, "success", "at least one"),
        (r#""success":[200,"x"]"#, "success[1]", "must be an integer, not a string"),
        (r#""success":[200,99]"#, "success[1]", "from 100 to 599"),
        (r#""success":[-200]"#, "success[0]", "from 100 to 599"),
        (r#""success":[200.0]"#, "success[0]", "from 100 to 599"),
        (r#""success":[null]"#, "success[0]", "must be an integer, not null"),
        (r#""discard":[600]"#, "discard[0]", "from 100 to 599"),
        (r#""discard":[99999999999999999999]"#, "discard[0]", "from 100 to 599"),
        (r#""discard":[200]"#, "discard", "must not have 200"),
        (r#""retry":3"#, "retry", "must be an object, not a number"),
        (r#""retry":{"numRetries":101}"#, "retry.numRetries", "from 0 to 100"),
        (r#""retry":{"numRetries":-1}"#, "retry.numRetries", "from 0 to 100"),
        (r#""retry":{"numRetries":"3"}"#, "retry.numRetries", "must be an integer, not a string"),
        (r#""retry":{"minDelayTarget":0}"#, "retry.minDelayTarget", "from 1 to 3600"),
        (r#""retry":{"maxDelayTarget":3601}"#, "retry.maxDelayTarget", "from 1 to 3600"),
        (r#""retry":{"maxDelayTarget":"1h"}"#, "retry.maxDelayTarget", "must be an integer"),
        (r#""retry":{"minDelayTarget":21}"#, "retry.minDelayTarget", "maxDelayTarget, which is 20"),
        (r#""retry":{"maxDelayTarget":19}"#, "retry.maxDelayTarget", "minDelayTarget, which is 20"),
        (
            r#""retry":{"numMinDelayRetries":2,"numMaxDelayRetries":2}"#,
            "retry.numRetries",
            "together: 4",
        ),
        (r#""retry":{"backoffFunction":"cubic"}"#, "retry.backoffFunction", "must be linear"),
        (r#""retry":{"numretries":1}"#, "retry.numretries", "is unknown; known here: numRetries"),
        (r#""ttl":60"#, "ttl", "a duration string like \"500ms\""),
        (r#""ttl":"60""#, "ttl", "must be a duration like \"500ms\""),
        (r#""ttl":"0s""#, "ttl", "longer than zero"),
        (r#""ttl":"876001h""#, "ttl", "at most \"876000h\""),
        (r#""rate":10"#, "rate", "must be an object"),
        (r#""rate":{"limit":1}"#, "rate.period", "is required"),
        (r#""rate":{"period":"1s"}"#, "rate.limit", "is required"),
        (r#""rate":{"limit":0,"period":"1s"}"#, "rate.limit", "from 1 to"),
        (r#""rate":{"limit":1,"period":"0ms"}"#, "rate.period", "longer than zero"),
        (r#""rate":{"limit":1,"period":1}"#, "rate.period", "a duration string"),
        (r#""rate":{"limit":1,"period":"1s","burst":2}"#, "rate.burst", "is unknown"),
        (r#""concurrency":0"#, "concurrency", "from 1 to 10000"),
        (r#""concurrency":10001"#, "concurrency", "from 1 to 10000"),
        (r#""concurrency":true"#, "concurrency", "must be an integer, not true or false"),
        (r#""timeout":"0s""#, "timeout", "longer than zero"),
        (r#""timeout":"16m""#, "timeout", "at most \"15m\""),
        (r#""timeout":1000"#, "timeout", "a duration string"),
        (r#""lanes":0"#, "lanes", "from 1 to 1024"),
        (r#""lanes":1025"#, "lanes", "from 1 to 1024"),
        (r#""lanes":2,"concurrency":1"#, "lanes", "delivery.concurrency, 1"),
        (r#""minInterval":"0s""#, "minInterval", "longer than zero"),
        (r#""minInterval":"25h""#, "minInterval", "at most \"24h\""),
        (r#""minInterval":5"#, "minInterval", "a duration string"),
        (r#""batch":{}"#, "batch.max", "is required"),
        (r#""batch":{"max":1}"#, "batch.max", "from 2 to 1000"),
        (r#""batch":{"max":1001}"#, "batch.max", "from 2 to 1000"),
        (r#""batch":{"max":2,"wait":1}"#, "batch.wait", "a duration string"),
        (r#""batch":{"max":2,"bytes":1.5}"#, "batch.bytes", "a number of bytes"),
        (r#""batch":{"max":2,"bytes":true}"#, "batch.bytes", "a number of bytes"),
        (r#""batch":{"max":2,"size":1}"#, "batch.size", "is unknown"),
        (r#""batch":10"#, "batch", "must be an object"),
        (r#""retries":1"#, "retries", "is unknown"),
    ] {
        refused(json, delivering(json), &format!("delivery.{field}"), reason);
    }
}

#[test]
fn wrong_batches() {
    for (endpoint, rest, field, reason) in [
        (
            "",
            r#""delivery":{"batch":{"max":2,"wait":"6s"}}"#,
            "delivery.batch.wait",
            "at most \"5s\"",
        ),
        (
            "",
            r#""delivery":{"batch":{"max":2,"wait":"0s"}}"#,
            "delivery.batch.wait",
            "longer than zero",
        ),
        (
            "",
            r#""delivery":{"batch":{"max":2,"bytes":9}}"#,
            "delivery.batch.bytes",
            "from \"1KiB\"",
        ),
        ("/{id}", r#""delivery":{"batch":{"max":2}}"#, "endpoint.url", "has {id}"),
        (
            "",
            r#""delivery":{"batch":{"max":2}},"content":{"envelope":false}"#,
            "delivery.batch",
            "needs the envelope",
        ),
    ] {
        let json = format!(r#"{{"endpoint":{{"url":"http://h{endpoint}"}},{rest}}}"#);
        refused(&json, read(&json), field, reason);
    }
    let json = r#"{"endpoint":{"url":"http://h/","actions":{"delete":{"method":"DELETE"}}},
        "delivery":{"batch":{"max":2}}}"#;
    refused(json, read(json), "endpoint.actions.delete.method", "the same for all actions");
}

#[test]
fn wrong_rest() {
    for (json, field, reason) in [
        (r#""content":true"#, "content", "must be an object"),
        (r#""content":{"envelope":"no"}"#, "content.envelope", "must be true or false"),
        (r#""content":{"body":true}"#, "content.body", "is unknown"),
        (r#""content":{"document":false,"envelope":false}"#, "content.document", "envelope"),
        (r#""data":[]"#, "data", "must be an object of booleans"),
        (r#""data":{"a":null}"#, "data.a", "not null"),
        (r#""data":{"a":{}}"#, "data.a", "not an object"),
        (r#""data":{"a":[1,[2]]}"#, "data.a[1]", "not a list"),
        (r#""data":{"a":[null]}"#, "data.a[0]", "not null"),
        (r#""data":{"a":["x","{"]}"#, "data.a[1]", "write {{"),
        (r#""data":{"a":"{b"}"#, "data.a", "never closed"),
        (r#""data":{"a":1,"a":2}"#, "data.a", "is given twice"),
        (r#""data":{},"content":{"envelope":false}"#, "data", "needs the envelope"),
        (r#""filter":"""#, "filter", "must not be empty"),
        (r#""filter":"  ""#, "filter", "must not be empty"),
        (r#""filter":true"#, "filter", "must be a string"),
        (r#""mode":"ACTIVE""#, "mode", "active or passive"),
        (r#""mode":1"#, "mode", "must be a string"),
        (r#""backfill":1"#, "backfill", "must be true or false, not a number"),
        (r#""status":"active""#, "status", "read-only"),
        (r#""status":null"#, "status", "read-only"),
        (r#""id":"x""#, "id", "is unknown"),
        (r#""signing":[]"#, "signing", "must be an object"),
        (r#""signing":{}"#, "signing.secrets", "is required"),
        (r#""signing":{"secrets":1}"#, "signing.secrets", "leave out signing"),
        (r#""signing":{"secrets":[]}"#, "signing.secrets", "one secret, or two"),
        (r#""signing":{"secrets":[1]}"#, "signing.secrets[0]", "must be a string"),
        (r#""signing":{"secrets":["abc"]}"#, "signing.secrets[0]", "\"whsec_\""),
        (r#""signing":{"secrets":["whsec_!"]}"#, "signing.secrets[0]", "base64"),
        (r#""signing":{"secrets":["whsec_c2hvcnQ="]}"#, "signing.secrets[0]", "24 to 64 bytes"),
        (r#""signing":{"key":"x"}"#, "signing.key", "is unknown"),
    ] {
        refused(json, with(json), field, reason);
    }
    let long = format!(r#""filter":"{}""#, "a".repeat(4_097));
    refused("long filter", with(&long), "filter", "at most 4096 bytes");
    let large = format!(r#""data":{{"a":"{}"}}"#, "a".repeat(65_536));
    refused("large data", with(&large), "data", "at most 65536 bytes");
    let many: Vec<_> = (0..257).map(|i| format!(r#""a{i}":1"#)).collect();
    let many = format!(r#""data":{{{}}}"#, many.join(","));
    refused("many", with(&many), "data", "at most 256 entries");
}

#[test]
fn a_secret_has_24_to_64_bytes() {
    use base64::Engine;
    for (bytes, accepted) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
        let key = base64::prelude::BASE64_STANDARD.encode(vec![7; bytes]);
        let spec = with(&format!(r#""signing":{{"secrets":["whsec_{key}"]}}"#));
        assert_eq!(spec.is_ok(), accepted, "{bytes}");
    }
}

#[test]
fn a_refused_secret_is_not_repeated() {
    let body = SECRET.strip_prefix("whsec_").unwrap();
    for secrets in [
        format!(r#"["{body}"]"#),
        format!(r#"["whsec_{body}!"]"#),
        format!(r#"["{SECRET}","{SECRET}"]"#),
        format!(r#"["{SECRET}","{SECRET}","{SECRET}"]"#),
        format!(r#""{SECRET}""#),
        format!(r#"{{"{SECRET}":1}}"#),
    ] {
        let invalid = with(&format!(r#""signing":{{"secrets":{secrets}}}"#)).unwrap_err();
        assert!(!format!("{invalid} {invalid:?}").contains(body), "{invalid}");
    }
    let twice = with(&format!(r#""signing":{{"secrets":["{SECRET}","{SECRET}"]}}"#));
    refused("twice", twice, "signing.secrets[1]", "must differ");
}
