//! A queue of SQS that other services put messages into, and that a server pulls from.

use super::{Server, raw, split};

/// How often a message is asked for, 5 s each.
const TAKES: usize = 12;

/// A queue of another service, spoken to as its SDK would.
pub(crate) struct Inbox {
    endpoint: String,
    name: String,
    url: String,
}

impl Inbox {
    /// One at an SQS that tests of a name have for themselves.
    pub(crate) fn new(endpoint: &str, test: &str) -> Self {
        let name = format!("server-{test}-{}", std::process::id());
        let mut inbox = Self { endpoint: endpoint.to_owned(), name, url: String::new() };
        let made = inbox.ask("CreateQueue", &format!(r#"{{"QueueName":"{}"}}"#, inbox.name));
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        inbox.url = made["QueueUrl"].as_str().unwrap().to_owned();
        inbox
    }

    /// One at the SQS that tests are given beside another service.
    pub(crate) fn beside(test: &str) -> Self {
        let endpoint = std::env::var("FLARE_TEST_SQS_ENDPOINT").expect("it needs SQS beside");
        Self::new(&endpoint, test)
    }

    /// A server that may pull from it.
    pub(crate) fn server(&self, arguments: &[&str]) -> Server {
        let who = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];
        let allowed = format!("--set=consumers.aws.endpoints={}", self.endpoint);
        let region = "--set=consumers.aws.region=us-east-1";
        Server::start_with(&who, &[[allowed.as_str(), region].as_slice(), arguments].concat())
    }

    /// It as the source of a consumer.
    pub(crate) fn source(&self) -> String {
        self.source_at(&self.endpoint)
    }

    /// A queue of its name elsewhere.
    pub(crate) fn source_at(&self, endpoint: &str) -> String {
        format!(r#""sqs":{{"queue":"{}","endpoint":"{endpoint}"}}"#, self.name)
    }

    pub(crate) fn send(&self, message: &str) {
        let wish = serde_json::json!({ "QueueUrl": self.url, "MessageBody": message });
        self.ask("SendMessage", &wish.to_string());
    }

    /// Receives a message that says this, and gives it back.
    pub(crate) fn take_and_return(&self, said: &str) {
        let wish = serde_json::json!({ "QueueUrl": self.url, "WaitTimeSeconds": 5 }).to_string();
        for _ in 0..TAKES {
            let answer: serde_json::Value =
                serde_json::from_str(&self.ask("ReceiveMessage", &wish)).unwrap();
            let Some(message) = answer["Messages"].get(0) else { continue };
            assert!(message["Body"].as_str().unwrap().contains(said), "{message}");
            let receipt = &message["ReceiptHandle"];
            let back = serde_json::json!({
                "QueueUrl": self.url, "ReceiptHandle": receipt, "VisibilityTimeout": 0,
            });
            self.ask("ChangeMessageVisibility", &back.to_string());
            return;
        }
        panic!("{said} is not in the queue");
    }

    fn ask(&self, action: &str, body: &str) -> String {
        let address = self.endpoint.strip_prefix("http://").unwrap().trim_end_matches('/');
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.{action}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20240101/us-east-1/sqs/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            body.len()
        );
        let answer = raw(address.parse().unwrap(), &[head.as_bytes(), body.as_bytes()]);
        let (status, answer) = split(&answer);
        assert_eq!(status, 200, "{action}: {answer}");
        answer
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.ask("DeleteQueue", &format!(r#"{{"QueueUrl":"{}"}}"#, self.url));
    }
}
