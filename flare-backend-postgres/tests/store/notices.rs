//! Notices: with them on, what other processes and plain SQL send is received although nobody polls; without a listener
//! nothing is said; behind a pooler the polls go on.

use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresQueue};
use flare_core::port::{Clock, Outgoing, Queue, QueueName, Receive, SystemClock};
use flare_testkit::Trials;
use futures::future::{join, poll_fn};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::connections::Said;
use crate::support::Scratch;
use crate::transactions::{at, order, with_orders};

/// Adds what is tried on a server.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("notices")
        .test("what_plain_sql_puts_is_received_without_a_poll", put_elsewhere)
        .test("what_another_process_sends_is_received_without_a_poll", sent_elsewhere)
        .test("a_lost_connection_loses_no_message", lost)
        .test("nothing_is_said_while_nobody_listens", unheard)
}

/// Adds what is tried behind a pooler.
pub(crate) fn pooled(all: Trials) -> Trials {
    all.of("notices").test("behind_a_pooler_it_says_so_and_polls", behind_a_pooler)
}

/// No test waits for so long.
const NEVER: Duration = Duration::from_hours(20);

/// A queue that hears, and does not poll.
async fn hearing(scratch: &Scratch) -> PostgresQueue {
    let config = scratch.config().poll_every(NEVER).notify();
    let queue = PostgresQueue::connect(config).await.unwrap();
    queue.create(&QueueName::Partition).await.unwrap();
    queue
}

/// Receives one message, however long that takes: whoever waits looks by itself only when this time is over.
async fn receive_one(queue: &PostgresQueue) {
    let request = Receive::new(1, NEVER).wait(NEVER);
    assert_eq!(queue.receive(&QueueName::Partition, request).await.unwrap().len(), 1);
}

/// The server's process that listens, once there is one that is not this.
async fn listener(scratch: &Scratch, but: Option<i32>) -> i32 {
    let client = scratch.connect().await;
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle' \
         AND query LIKE 'INSERT INTO {}.listening %'",
        scratch.name
    );
    loop {
        let found = client.query(&sql, &[]).await.unwrap();
        let found = found.iter().map(|row| row.get(0)).find(|pid| Some(*pid) != but);
        match found {
            Some(pid) => return pid,
            None => SystemClock::new().sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn put_elsewhere(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let queue = hearing(&scratch).await;
    let put = async {
        listener(&scratch, None).await;
        scratch.run(&format!("SELECT flare.put('{}', '{}'::text)", order(1), at(1))).await;
    };
    join(receive_one(&queue), put).await;
}

async fn sent_elsewhere(uri: String) {
    let scratch = Scratch::new(&uri);
    let queue = hearing(&scratch).await;
    let other = PostgresQueue::connect(scratch.config()).await.unwrap();
    let send = async {
        listener(&scratch, None).await;
        send_one(&other).await;
    };
    join(receive_one(&queue), send).await;
}

async fn send_one(queue: &PostgresQueue) {
    queue.send(&QueueName::Partition, vec![Outgoing::new("x")]).await.remove(0).unwrap();
}

async fn lost(uri: String) {
    let scratch = Scratch::new(&uri);
    let queue = hearing(&scratch).await;
    let other = PostgresQueue::connect(scratch.config()).await.unwrap();
    let mut former = None;
    for _ in 0..3 {
        // Once what is sent right after the connection was lost, then what is sent when there is another.
        let send = async {
            let listening = listener(&scratch, former).await;
            let end = format!("SELECT pg_terminate_backend({listening})");
            scratch.connect().await.batch_execute(&end).await.unwrap();
            send_one(&other).await;
            listening
        };
        let ((), ended) = join(receive_one(&queue), send).await;
        former = Some(ended);
        let send = async {
            listener(&scratch, former).await;
            send_one(&other).await;
        };
        join(receive_one(&queue), send).await;
    }
}

/// What is said on the schema's channel until this very connection says something.
async fn said_meanwhile(scratch: &Scratch, work: impl Future<Output = ()>) -> Vec<String> {
    let (client, mut connection) = tokio_postgres::connect(&scratch.uri, NoTls).await.unwrap();
    let mut said = Vec::new();
    let work = async {
        client.batch_execute(&format!("LISTEN {}", scratch.name)).await.unwrap();
        work.await;
        client.batch_execute(&format!("NOTIFY {}, 'the end'", scratch.name)).await.unwrap();
        std::future::pending::<()>().await;
    };
    let hear = async {
        loop {
            let heard = poll_fn(|context| connection.poll_message(context)).await;
            match heard.unwrap().unwrap() {
                AsyncMessage::Notification(it) if it.payload() == "the end" => return,
                AsyncMessage::Notification(it) => said.push(it.payload().to_owned()),
                _ => {}
            }
        }
    };
    tokio::select! {
        () = hear => {}
        () = work => {}
    }
    said
}

async fn unheard(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let queue = backend.queue();
    queue.create(&QueueName::Partition).await.unwrap();
    let put = async |number: u64| {
        scratch.run(&format!("SELECT flare.put('{}', '{}'::text)", order(number), at(1))).await;
        send_one(&queue).await;
        let later = Outgoing::new("x").delay(Duration::from_secs(60));
        queue.send(&QueueName::Partition, vec![later]).await.remove(0).unwrap();
    };
    assert_eq!(said_meanwhile(&scratch, put(1)).await, [""; 0]);
    // While somebody listens it is said once by each commit; not of what is not there yet.
    let listens = hearing(&scratch).await;
    let request = Receive::new(1, NEVER).wait(NEVER);
    let work = async {
        listener(&scratch, None).await;
        said_meanwhile(&scratch, put(2)).await
    };
    let name = QueueName::Partition;
    let receiving = async {
        loop {
            listens.receive(&name, request).await.unwrap();
        }
    };
    let said = tokio::select! {
        said = work => said,
        () = receiving => Vec::new(),
    };
    let queues: Vec<&str> = said.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(queues, ["partition", "partition"], "{said:?}");
}

async fn behind_a_pooler(uri: String) {
    let scratch = Scratch::new(&uri);
    let said = Said::begin();
    let queue = PostgresQueue::connect(scratch.config().notify()).await.unwrap();
    assert_eq!(said.text().matches("notify has no effect here").count(), 1, "{}", said.text());
    queue.create(&QueueName::Partition).await.unwrap();
    let other = PostgresQueue::connect(scratch.config()).await.unwrap();
    for _ in 0..3 {
        join(receive_one(&queue), send_one(&other)).await;
    }
    let listening = format!("SELECT count(*)::text FROM {}.listening", scratch.name);
    let rows = scratch.connect().await.simple_query(&listening).await.unwrap();
    let count = rows.iter().find_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    assert_eq!(count, Some("0"), "nobody has to say anything");
}
