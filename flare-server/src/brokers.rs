//! Takes `[connections]` and `[consumers]`; gives what opens the queues and streams that consumers name. Connects to
//! none of them: that is for the node that works a consumer, and a broker that is away does not keep a server from
//! starting.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use flare_backend_kinesis::KinesisConnector;
use flare_backend_rabbitmq::RabbitMqConnector;
use flare_backend_sqs::SqsConnector;
use flare_core::http::Guard;
use flare_core::port::SourceConnector;

use crate::config::{BrokerConnection, Config};
use crate::failure::Failure;

/// Which endpoints consumers may name, wherever they are.
const ENDPOINTS: &str = "consumers.aws.endpoints";

/// A connector for each kind of broker.
pub(crate) fn connectors(
    config: &Config,
    guard: &Guard,
) -> Result<Vec<Arc<dyn SourceConnector>>, Failure> {
    let aws = &config.consumers.aws;
    let judge = |guard: Guard| move |address| guard.check(address).map_err(|it| it.to_string());
    let sqs = SqsConnector::new(aws.sqs()).allowed_in(ENDPOINTS);
    let kinesis = KinesisConnector::new(aws.kinesis()).allowed_in(ENDPOINTS);
    let (mut sqs, mut kinesis) =
        (sqs.guard(judge(guard.clone())), kinesis.guard(judge(guard.clone())));
    for endpoint in &aws.endpoints {
        sqs = sqs.allow_endpoint(endpoint);
        kinesis = kinesis.allow_endpoint(endpoint);
    }
    Ok(vec![Arc::new(sqs), Arc::new(kinesis), Arc::new(rabbitmq(&config.connections)?)])
}

fn rabbitmq(
    connections: &BTreeMap<String, BrokerConnection>,
) -> Result<RabbitMqConnector, Failure> {
    connections.iter().try_fold(RabbitMqConnector::new(), |connector, (name, connection)| {
        let table = format!("connections.{name}");
        let mut config = connection.rabbitmq();
        let file = &connection.ca_file;
        if !file.is_empty() {
            let pem = fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!("{table}.ca-file: cannot read {file}: {error}"))
            })?;
            config = config.root_certificates(pem);
        }
        connector.connection(name, config).map_err(|error| match error.field() {
            // The connector has the text of the file, and the operator its name.
            Some("root_certificates") => {
                Failure::usage(format!("{table}.ca-file: {file} has no certificate in PEM"))
            }
            Some(field) => Failure::setting(&table, field, error.detail()),
            None => Failure::because(format!("cannot use [{table}]"), error),
        })
    })
}
