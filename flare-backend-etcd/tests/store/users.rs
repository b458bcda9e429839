//! An etcd that asks who we are: what is refused is told, and a token that is gone is renewed.

use std::time::Duration;

use crate::support::made;
use crate::support::own_cluster::OwnCluster;
use etcd_client::{Client, ConnectOptions, Permission, PermissionType};
use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_core::ErrorKind;
use flare_core::port::{Lease, Write};
use flare_testkit::Trials;
use futures::StreamExt;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("users").test("who_we_are_is_checked_and_told_again", who_we_are)
}

/// Lets only `root` do everything, and `flare` what is under `flare/`.
async fn ask_who_we_are(cluster: &OwnCluster) {
    let mut raw = Client::connect(&cluster.endpoints, None).await.expect("it is there");
    raw.user_add("root", "root", None).await.expect("a user is added");
    raw.role_add("root").await.expect("a role is added");
    raw.user_grant_role("root", "root").await.expect("it is granted");
    raw.user_add("flare", "right", None).await.expect("a user is added");
    raw.role_add("flare").await.expect("a role is added");
    let ours = Permission::new(PermissionType::Readwrite, "flare/").with_prefix();
    raw.role_grant_permission("flare", ours).await.expect("it is granted");
    raw.user_grant_role("flare", "flare").await.expect("it is granted");
    raw.auth_enable().await.expect("it is enabled");
}

async fn who_we_are(_: String) {
    let cluster = OwnCluster::start(1).await;
    let config = || EtcdConfig::new(&cluster.endpoints).timeout(Duration::from_secs(30));
    let nobody = EtcdLease::connect(config().user("flare", "right")).await;
    let nobody = nobody.expect_err("nobody is asked there yet");
    assert_eq!(nobody.kind(), ErrorKind::Denied);
    assert!(nobody.to_string().contains("authentication is not enabled"), "{nobody}");
    ask_who_we_are(&cluster).await;

    for (wrong, said) in [
        (config().user("flare", "wrong"), "invalid user ID or password"),
        (config().user("somebody", "right"), "invalid user ID or password"),
        (config(), "user name is empty"),
        (config().user("flare", "right").prefix("other/"), "permission denied"),
    ] {
        let error = EtcdLease::connect(wrong).await.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }

    let lease = EtcdLease::connect(config().user("flare", "right")).await.expect("it may");
    let grant = lease.grant(Duration::from_secs(120)).await.expect("it is granted");
    let first = made(lease.write(Write::new("key", "1").lease(grant.id)).await.expect("written"));
    let mut watch = lease.watch("", first);
    for round in 2..4 {
        // Tokens do not outlive the server.
        cluster.kill(0).await;
        cluster.revive(0).await;
        let write = Write::new("key", round.to_string()).lease(grant.id);
        let written = made(lease.write(write).await.expect("it signs in again"));
        lease.keep_alive(grant.id).await.expect("it signs in again");
        let event = watch.next().await.expect("a watch goes on").expect("it signs in again");
        assert_eq!(event.revision, written);
    }

    let root = ConnectOptions::new().with_user("root", "root");
    let mut root = Client::connect(&cluster.endpoints, Some(root)).await.expect("root may");
    root.user_revoke_role("flare", "flare").await.expect("it is revoked");
    let error = lease.get("key").await.expect_err("it may not any more");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = lease.watch("", first).next().await.expect("it is told").expect_err("it may not");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}
