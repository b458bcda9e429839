//! A cluster is refused where it could not work, and by the key that is in the way.

use super::*;

fn from_file(text: &str) -> Result<Config, ConfigError> {
    Layers::new()?.text("flare.toml", text)?.finish()
}

/// A server that has everything in one database.
const IN_MONGODB: &str = "repository.engine = \"mongodb\"\nqueue.engine = \"mongodb\"\n\
                          lease.engine = \"mongodb\"\n";

fn in_mongodb(more: &str) -> Result<Config, ConfigError> {
    from_file(&format!("{IN_MONGODB}{more}"))
}

/// What a cluster needs on stores that all nodes reach.
const CLUSTER: &str = "cluster.enable = true\n";

#[test]
fn a_cluster_needs_stores_that_all_nodes_reach() {
    let config = in_mongodb(CLUSTER).unwrap();
    assert!(config.works() && config.runs());
    for (part, says) in [("repository", "\"mongodb\""), ("queue", "\"sqs\""), ("lease", "\"etcd\"")]
    {
        let engines = IN_MONGODB.replace(&format!("{part}.engine = \"mongodb\"\n"), "");
        let refused = from_file(&format!("{engines}{CLUSTER}")).unwrap_err();
        assert_eq!(refused.key(), "cluster.enable", "{refused}");
        let message = refused.to_string();
        assert!(message.contains(&format!("needs {part}.engine")), "{message}");
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn settings_of_a_cluster_need_one() {
    for (line, key) in [
        ("cluster.name = \"a\"", "cluster.name"),
        ("cluster.roles = [\"work\"]", "cluster.roles"),
        ("cluster.weight = 50", "cluster.weight"),
        ("cluster.pinned-slots = 4", "cluster.pinned-slots"),
    ] {
        let refused = in_mongodb(line).unwrap_err();
        assert_eq!(refused.key(), key);
        assert!(refused.to_string().contains("cluster.enable is false"), "{refused}");
        assert!(in_mongodb(&format!("{CLUSTER}{line}")).is_ok(), "{line}");
    }
}

#[test]
fn a_node_works_if_both_worker_and_roles_say_so() {
    let works = |line: &str| in_mongodb(&format!("{CLUSTER}{line}")).map(|config| config.works());
    assert_eq!(works("cluster.roles = [\"lead\", \"ingest\"]"), Ok(false));
    assert_eq!(works("worker.enable = false"), Ok(false));
    let refused = works("worker.enable = false\ncluster.roles = [\"work\"]").unwrap_err();
    assert_eq!(refused.key(), "cluster.roles");
    assert!(!in_mongodb("worker.enable = false").unwrap().runs());
}

#[test]
fn etcd_is_refused_by_a_program_that_was_built_without_it() {
    let asked = from_file("lease.engine = \"etcd\"\nlease.etcd.ttl = \"5s\"");
    if cfg!(feature = "etcd") {
        assert_eq!(asked.unwrap().lease.etcd.ttl.as_secs(), 5);
    } else {
        let refused = asked.unwrap_err();
        assert_eq!(refused.key(), "lease.engine");
        assert!(refused.to_string().contains("--features etcd"), "{refused}");
    }
    let idle = from_file("lease.etcd.ttl = \"5s\"").unwrap_err();
    assert!(idle.to_string().contains("lease.engine is not \"etcd\""), "{idle}");
}

#[test]
fn what_the_readme_says_of_clusters_is_accepted() {
    let readme = include_str!("../../README.md");
    let section = readme.split_once("## As a cluster").unwrap().1.split("\n## ").next().unwrap();
    let fences = section.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let [all, with_etcd] = &fences.collect::<Vec<_>>()[..] else { panic!("two files") };
    let config = from_file(all).unwrap();
    assert!(config.cluster.enable && config.works());
    let etcd: toml::Table = with_etcd.parse().unwrap();
    if cfg!(feature = "etcd") {
        let mut table: toml::Table = all.parse().unwrap();
        table.extend(etcd);
        let config = from_file(&toml::to_string(&table).unwrap()).unwrap();
        assert_eq!(
            (config.lease.engine, config.lease.etcd.endpoints.len()),
            (LeaseEngine::Etcd, 3)
        );
    }
}
