//! Takes who we are by our settings: a key, or a role to take on; gives what signs requests.

use aws_config::SdkConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use secrecy::{ExposeSecret, SecretString};

/// What a role's sessions are called, unless the settings say otherwise.
const SESSION: &str = "flare";

/// A key of our own.
pub(crate) fn credentials(
    id: &str,
    secret: &SecretString,
    session_token: Option<&SecretString>,
) -> Credentials {
    let token = session_token.map(|it| it.expose_secret().to_owned());
    Credentials::new(id, secret.expose_secret(), token, None, "settings")
}

/// How a role is taken on by whoever we are.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleSession {
    pub(crate) external_id: Option<String>,
    pub(crate) session_name: Option<String>,
    pub(crate) sts_endpoint: Option<String>,
}

impl RoleSession {
    /// The settings of whoever we are, with the role of this ARN.
    pub(crate) async fn of(&self, arn: &str, base: SdkConfig) -> SdkConfig {
        let mut asking = base.to_builder();
        if let Some(url) = &self.sts_endpoint {
            asking = asking.endpoint_url(url);
        }
        let session = self.session_name.as_deref().unwrap_or(SESSION);
        let mut role = AssumeRoleProvider::builder(arn).session_name(session);
        if let Some(id) = &self.external_id {
            role = role.external_id(id);
        }
        let provider = role.configure(&asking.build()).build().await;
        let provider = SharedCredentialsProvider::new(provider);
        base.into_builder().credentials_provider(provider).build()
    }
}
