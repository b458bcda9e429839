//! Takes a connection that is no other work's; gives what is said on the channel that is called as the schema is
//! (`NOTIFY`). Only where the connection stays with one process of the server: a pooler hands out others, which do not
//! listen.

use std::time::Duration;

use flare_core::{ErrorKind, Result};
use futures::future::poll_fn;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use super::connector::Opened;
use super::{Database, gone};
use crate::error;
use crate::fault::{Fault, Worked};
use crate::tls::Stream;

const OPERATION: &str = "listen";

/// A connection that listens.
pub(crate) struct Channel<'a> {
    database: &'a Database,
    client: Client,
    connection: Connection<Socket, Stream<Socket>>,
}

impl Database {
    /// Listens; nothing where a pooler may be in between.
    pub(crate) async fn listen(&self) -> Result<Option<Channel<'_>>> {
        let listening = async {
            let opened = self.in_time(async { Ok(self.connector.open(&self.options).await?) });
            let Opened { client, connection, direct } = opened.await?;
            let mut channel = Channel { database: self, client, connection };
            // The name is checked: it means the same quoted and not.
            let listen = format!("LISTEN {}", self.schema.as_str());
            if direct {
                channel.ask(&listen, &|_| {}).await?;
            }
            Ok(direct.then_some(channel))
        };
        listening.await.map_err(|fault: Fault| fault.into_error(OPERATION))
    }

    /// Awaits an answer for as long as a call may take.
    async fn in_time<T>(&self, answer: impl Future<Output = Worked<T>>) -> Worked<T> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.clock.sleep(self.timeout) => {
                let detail = format!("no answer within {:?}", self.timeout);
                Err(error::of(ErrorKind::Timeout, OPERATION, detail).into())
            }
        }
    }
}

impl Channel<'_> {
    /// Runs a statement, which also shows that the server is still there; gives `heard` what is said meanwhile.
    pub(crate) async fn run(&mut self, sql: &'static str, heard: &impl Fn(&str)) -> Result<()> {
        let text = self.database.schema.text(sql);
        self.ask(&text, heard).await.map_err(|fault| fault.into_error(OPERATION))
    }

    async fn ask(&mut self, sql: &str, heard: &impl Fn(&str)) -> Worked<()> {
        let answer = async { Ok(self.client.batch_execute(sql).await?) };
        tokio::select! {
            biased;
            answer = self.database.in_time(answer) => answer,
            lost = serve(&mut self.connection, heard) => Err(lost),
        }
    }

    /// Gives what is said for a while to `heard`.
    pub(crate) async fn hear(&mut self, time: Duration, heard: &impl Fn(&str)) -> Result<()> {
        tokio::select! {
            lost = serve(&mut self.connection, heard) => Err(lost.into_error(OPERATION)),
            () = self.database.clock.sleep(time) => Ok(()),
        }
    }
}

/// Serves the connection until it is lost.
async fn serve(
    connection: &mut Connection<Socket, Stream<Socket>>,
    heard: &impl Fn(&str),
) -> Fault {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(said))) => heard(said.payload()),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Fault::Sql(error),
            None => return Fault::Refused(gone(OPERATION)),
        }
    }
}
