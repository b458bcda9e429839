//! Takes trials that need a real service; gives a test program that runs them where the service
//! is, and shows them as ignored where it is not. For targets with `harness = false`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

use crate::{Clause, Fixture, Subject};

/// Longer than any test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);

/// A service that tests run against; `scripts/services up` starts those that Flare's own backends need.
///
/// ```
/// use flare_testkit::Service;
///
/// const CASSANDRA: Service = Service::new("cassandra", "MY_TEST_CASSANDRA");
/// assert_eq!((CASSANDRA.name(), CASSANDRA.address()), ("cassandra", None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    name: &'static str,
    variable: &'static str,
}

impl Service {
    /// A MongoDB server, at the URI in `FLARE_TEST_MONGODB_URI`.
    pub const MONGODB: Self = Self::new("mongodb", "FLARE_TEST_MONGODB_URI");
    /// A PostgreSQL server, the newest that is known, at the URI in `FLARE_TEST_POSTGRESQL_URI`.
    pub const POSTGRESQL: Self = Self::new("postgresql", "FLARE_TEST_POSTGRESQL_URI");
    /// A PostgreSQL 15, the oldest that is known, at the URI in `FLARE_TEST_POSTGRESQL15_URI`.
    pub const POSTGRESQL_15: Self = Self::new("postgresql15", "FLARE_TEST_POSTGRESQL15_URI");
    /// A PgBouncer before that newest PostgreSQL, which hands out connections per transaction, at the URI in
    /// `FLARE_TEST_PGBOUNCER_URI`.
    pub const PGBOUNCER: Self = Self::new("pgbouncer", "FLARE_TEST_PGBOUNCER_URI");
    /// An SQS server, at the URL in `FLARE_TEST_SQS_ENDPOINT`.
    pub const SQS: Self = Self::new("sqs", "FLARE_TEST_SQS_ENDPOINT");
    /// A RabbitMQ broker, at the URI in `FLARE_TEST_RABBITMQ_URI`.
    pub const RABBITMQ: Self = Self::new("rabbitmq", "FLARE_TEST_RABBITMQ_URI");
    /// An etcd cluster, at the URLs in `FLARE_TEST_ETCD_ENDPOINTS`.
    pub const ETCD: Self = Self::new("etcd", "FLARE_TEST_ETCD_ENDPOINTS");

    /// A service of that name, at the address that this variable says.
    pub const fn new(name: &'static str, variable: &'static str) -> Self {
        Self { name, variable }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The variable that says where it is.
    pub const fn variable(self) -> &'static str {
        self.variable
    }

    /// Where it is, if it is anywhere.
    pub fn address(self) -> Option<String> {
        std::env::var(self.variable()).ok().filter(|address| !address.is_empty())
    }
}

/// A test program made of trials against one service.
///
/// ```
/// use flare_testkit::{Service, Trials};
///
/// fn trials() -> Trials {
///     Trials::on(Service::MONGODB)
///         .test("it_answers", async |address: String| assert!(address.starts_with("mongodb://")))
/// }
///
/// // fn main() -> std::process::ExitCode { trials().run() }
/// # drop(trials());
/// ```
#[must_use = "trials do nothing until they are run"]
pub struct Trials {
    service: Service,
    address: Arc<str>,
    trials: Vec<Trial>,
    part: &'static str,
    at_a_time: Option<usize>,
}

impl Trials {
    /// No trials yet, against `service`.
    pub fn on(service: Service) -> Self {
        let address = service.address().unwrap_or_default().into();
        Self { service, address, trials: Vec::new(), part: "", at_a_time: None }
    }

    /// Runs so many at a time, unless the command line says: for trials that mostly wait, of which
    /// more can run than there are processors.
    pub fn at_a_time(mut self, trials: usize) -> Self {
        self.at_a_time = Some(trials);
        self
    }

    /// Names what is added from here on after a part of the program: `part::name`.
    pub fn of(mut self, part: &'static str) -> Self {
        self.part = part;
        self
    }

    /// Adds every clause of a suite, each on a fixture of its own. A suite that is tried in several
    /// ways has a name for each.
    pub fn suite<F: Fixture>(
        mut self,
        name: &str,
        clauses: &'static [Clause<F::Port>],
        fixture: fn(&str) -> F,
    ) -> Self {
        for clause in clauses {
            let address = Arc::clone(&self.address);
            let run = clause.run;
            let name = if name.is_empty() {
                clause.name.to_owned()
            } else {
                format!("{name}::{}", clause.name)
            };
            self = self.add(name, move || {
                crate::run(fixture(&address), |subject: Subject<F::Port>| run(subject));
            });
        }
        self
    }

    /// Adds a test, which is given the service's address. One that hangs fails.
    #[allow(clippy::disallowed_methods, reason = "a hung test must fail in real time")]
    pub fn test<R: Future<Output = ()>>(
        self,
        name: &'static str,
        test: impl FnOnce(String) -> R + Send + 'static,
    ) -> Self {
        let address = self.address.to_string();
        self.add(name, move || {
            crate::suite::block_on(async {
                tokio::time::timeout(LIMIT, test(address)).await.expect("the test ends in time");
            });
        })
    }

    fn add(mut self, name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Self {
        let missing = self.address.is_empty();
        let mut name: String = name.into();
        if !self.part.is_empty() {
            name = format!("{}::{name}", self.part);
        }
        let trial = Trial::test(name, move || {
            run();
            Ok(())
        });
        self.trials.push(trial.with_ignored_flag(missing));
        self
    }

    /// Runs what the command line asks for, as any test program does.
    #[allow(clippy::print_stderr, reason = "a skip nobody notices is no test")]
    pub fn run(self) -> ExitCode {
        if self.address.is_empty() {
            let variable = self.service.variable();
            eprintln!(
                "*** SKIPPED: {} tests need {variable}: eval \"$(scripts/services env)\" after \
                 scripts/services up",
                self.trials.len()
            );
        }
        let mut arguments = Arguments::from_args();
        arguments.test_threads = arguments.test_threads.or(self.at_a_time);
        libtest_mimic::run(&arguments, self.trials).exit_code()
    }
}

impl std::fmt::Debug for Trials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trials").field("service", &self.service).finish_non_exhaustive()
    }
}
