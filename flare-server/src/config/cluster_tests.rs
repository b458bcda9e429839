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

#[test]
fn queue_and_leases_are_the_repository_s_own_unless_something_is_said() {
    let config = from_file("repository.engine = \"mongodb\"\nqueue.engine = \"\"").unwrap();
    assert_eq!(config.queue.engine, QueueEngine::MongoDb);
    assert_eq!(config.lease.engine, LeaseEngine::MongoDb);
    let config = from_file("").unwrap();
    assert_eq!(config.queue.engine, QueueEngine::Sqlite);
    assert_eq!(config.lease.engine, LeaseEngine::Sqlite);
    let config = from_file("repository.engine = \"memory\"").unwrap();
    assert_eq!(config.queue.engine, QueueEngine::Memory);
    assert_eq!(config.lease.engine, LeaseEngine::Memory);
}

#[test]
fn what_other_servers_could_not_see_is_refused_beside_a_repository_they_see() {
    for (part, engine) in ["queue", "lease"]
        .iter()
        .flat_map(|part| ["mongodb", "sqlite"].map(|engine| (part, engine)))
    {
        let line = format!("repository.engine = \"{engine}\"\n{part}.engine = \"memory\"\n");
        let refused = from_file(&line).unwrap_err();
        assert_eq!(refused.key(), format!("{part}.engine"), "{refused}");
        assert!(refused.to_string().contains("cluster.exclusive"), "{refused}");
        assert!(from_file(&format!("{line}cluster.exclusive = true")).is_ok());
    }
    let refused =
        from_file("repository.engine = \"memory\"\nlease.engine = \"mongodb\"").unwrap_err();
    assert_eq!(refused.key(), "lease.engine");
    assert!(refused.to_string().contains("needs a repository"), "{refused}");
}

#[test]
fn queue_and_leases_are_in_no_other_file_than_the_repository_s() {
    for part in ["queue", "lease"] {
        for engine in ["memory", "mongodb"] {
            let line = format!("repository.engine = \"{engine}\"\n{part}.engine = \"sqlite\"");
            let refused = from_file(&line).unwrap_err();
            assert_eq!(refused.key(), format!("{part}.engine"), "{refused}");
            assert!(refused.to_string().contains("repository's file"), "{refused}");
        }
    }
}

#[test]
fn a_node_works_if_both_worker_and_roles_say_so() {
    let works = |line: &str| in_mongodb(line).map(|config| config.works());
    assert_eq!(works("cluster.enable = true"), Ok(true), "as files of before may say");
    assert_eq!(works("cluster.roles = [\"lead\", \"ingest\"]"), Ok(false));
    assert_eq!(works("worker.enable = false"), Ok(false));
    let refused = works("worker.enable = false\ncluster.roles = [\"work\"]").unwrap_err();
    assert_eq!(refused.key(), "cluster.roles");
}

#[test]
fn etcd_is_refused_by_a_program_that_was_built_without_it() {
    let on_etcd = "lease.engine = \"etcd\"\nlease.etcd.ttl = \"5s\"";
    let asked = from_file(&format!("repository.engine = \"mongodb\"\n{on_etcd}"));
    if cfg!(feature = "etcd") {
        assert_eq!(asked.unwrap().node.ttl.as_secs(), 5);
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
    assert!(config.works());
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
