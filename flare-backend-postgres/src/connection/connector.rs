//! Takes the addresses of a server and those that may take its place; gives a connection to the first that
//! answers. One that is silent has its share of the time and no more, whether it takes no connection or takes
//! one and says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use flare_core::port::Clock;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tracing::debug;

use super::direct::is_direct;
use crate::tls::{Stream, Tls};

/// How long one of several addresses may take, unless the URI says: a keep-alive, which has three seconds, then
/// reaches the second, and the third.
const SHARE: Duration = Duration::from_secs(1);

/// Makes connections.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) tls: Tls,
    pub(super) clock: Arc<dyn Clock>,
    /// How long a call may take.
    pub(super) timeout: Duration,
    /// Whether every connection so far goes to one process of the server, which then knows its statements.
    pub(super) remembers: Arc<AtomicBool>,
    /// Which address is asked first: the one that answered last, or the one after it that did not.
    pub(super) first: Arc<AtomicUsize>,
}

/// A connection that somebody has to serve.
pub(super) struct Opened {
    pub(super) client: Client,
    pub(super) connection: Connection<Socket, Stream<Socket>>,
    /// Whether it goes to one process of the server for as long as it lasts.
    pub(super) direct: bool,
}

impl Connect for Connector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = config.clone();
        Box::pin(async move {
            let opened = self.open(&config).await?;
            let serve = async {
                if let Err(error) = opened.connection.await {
                    debug!(%error, "a connection was lost");
                }
            };
            Ok((opened.client, tokio::spawn(serve)))
        })
    }
}

impl Connector {
    /// Connects to the first address that answers.
    pub(super) async fn open(&self, config: &Config) -> Result<Opened, Error> {
        let all = addresses(config).await;
        let share = SHARE.min(self.timeout / u32::try_from(all.len() + 1).unwrap_or(u32::MAX));
        let share = config.get_connect_timeout().copied().unwrap_or(share);
        let first = match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => self.first.fetch_add(1, Ordering::Relaxed),
            _ => self.first.load(Ordering::Relaxed),
        };
        let order = (0..all.len()).map(|step| (first + step) % all.len());
        let mut order = order.peekable();
        while let Some(at) = order.next() {
            let connecting = self.connect_one(&all[at]);
            // The last one has the time that is left, which the pool knows.
            if order.peek().is_none() {
                let connected = connecting.await;
                self.first.store(if connected.is_ok() { at } else { at + 1 }, Ordering::Relaxed);
                return connected;
            }
            tokio::select! {
                biased;
                connected = connecting => match connected {
                    Ok(connected) => {
                        self.first.store(at, Ordering::Relaxed);
                        return Ok(connected);
                    }
                    Err(error) => debug!(%error, "one of several addresses does not answer"),
                },
                () = self.clock.sleep(share) => debug!("one of several addresses is silent"),
            }
            self.first.store(at + 1, Ordering::Relaxed);
        }
        // There is an address at least: the driver says what is wrong with none.
        self.connect_one(config).await
    }

    /// Connects, and finds out what goes on in between before anything else is asked.
    async fn connect_one(&self, config: &Config) -> Result<Opened, Error> {
        let (client, mut connection) = config.connect(self.tls.clone()).await?;
        let direct = tokio::select! {
            biased;
            direct = is_direct(&client) => direct?,
            // It ends before the answer only if there will be none: asking says so.
            _ = &mut connection => is_direct(&client).await?,
        };
        if !direct {
            self.remembers.store(false, Ordering::Relaxed);
        }
        Ok(Opened { client, connection, direct })
    }
}

/// Everything a name stands for, in the order of the names: each as if there were no other.
async fn addresses(config: &Config) -> Vec<Config> {
    let (hosts, given) = (config.get_hosts(), config.get_hostaddrs());
    let mut all = Vec::new();
    for at in 0..hosts.len().max(given.len()) {
        let ports = config.get_ports();
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let mut one = alone(config);
        one.port(port);
        match hosts.get(at) {
            Some(Host::Tcp(name)) => _ = one.host(name),
            #[cfg(unix)]
            Some(Host::Unix(path)) => _ = one.host_path(path),
            None => {}
        }
        if let Some(address) = given.get(at) {
            one.hostaddr(*address);
        } else if let Some(Host::Tcp(name)) = hosts.get(at)
            && let Ok(found) = tokio::net::lookup_host((name.as_str(), port)).await
        {
            let known = all.len();
            for address in found {
                let mut one = one.clone();
                one.hostaddr(address.ip());
                all.push(one);
            }
            if all.len() > known {
                continue;
            }
        }
        // A name that nobody knows is left to the driver, which says so.
        all.push(one);
    }
    if all.len() > 1 {
        // Whoever may take the other's place follows it until then, and takes no writes.
        let any = config.get_target_session_attrs() == TargetSessionAttrs::Any;
        for one in all.iter_mut().filter(|_| any) {
            one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
    }
    all
}

/// The same options without any address.
fn alone(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(time) = config.get_connect_timeout() {
        one.connect_timeout(*time);
    }
    if let Some(time) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*time);
    }
    if let Some(pause) = config.get_keepalives_interval() {
        one.keepalives_interval(pause);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives());
    one.keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode());
    one.ssl_negotiation(config.get_ssl_negotiation());
    one.target_session_attrs(config.get_target_session_attrs());
    one.channel_binding(config.get_channel_binding());
    one.load_balance_hosts(config.get_load_balance_hosts());
    one
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "it is a test")]
mod tests {
    use super::*;

    const OPTIONS: &str = "user=ada password=secret dbname=orders options='-c geqo=off' application_name=shop \
         sslmode=require sslnegotiation=direct connect_timeout=7 tcp_user_timeout=8 keepalives=0 \
         keepalives_idle=9 keepalives_interval=10 keepalives_retries=11 target_session_attrs=read-only \
         channel_binding=disable load_balance_hosts=random";

    #[tokio::test]
    async fn one_of_several_keeps_every_option() {
        let given = format!("{OPTIONS} host=one,two hostaddr=10.0.0.1,10.0.0.2 port=1,2");
        let found = addresses(&given.parse().unwrap()).await;
        let wanted = ["host=one hostaddr=10.0.0.1 port=1", "host=two hostaddr=10.0.0.2 port=2"];
        let wanted = wanted.map(|it| format!("{OPTIONS} {it}").parse::<Config>().unwrap());
        assert_eq!(found, wanted);
    }

    #[tokio::test]
    async fn of_several_the_one_that_takes_writes_is_meant() {
        let attrs = async |given: &str| {
            let found = addresses(&given.parse().unwrap()).await;
            found.iter().map(Config::get_target_session_attrs).collect::<Vec<_>>()
        };
        assert_eq!(attrs("host=127.0.0.1,127.0.0.2").await, [TargetSessionAttrs::ReadWrite; 2]);
        assert_eq!(attrs("host=127.0.0.1").await, [TargetSessionAttrs::Any]);
        assert_eq!(attrs("host=/tmp/a,/tmp/b").await, [TargetSessionAttrs::ReadWrite; 2]);
    }
}
