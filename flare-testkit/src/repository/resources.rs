//! Clauses RE1 to RE6: kinds of documents.

use flare_core::ErrorKind;
use flare_core::model::{ChangeRule, DocumentUrl, Endpoint, Resource, ResourceId, ResourceState};
use flare_core::port::Page;

use super::make::{Make, Repo, race};

/// RE1: of conflicting endpoints inserted at once one is taken.
pub async fn re1_conflicting_inserts_have_one_winner(repo: Repo) {
    let make = Make::new("re1_race");
    for round in 0..8 {
        let resources: Vec<Resource> =
            (0..8).map(|racer| make.resource(&format!("/{round}/{{x{racer}}}/y"))).collect();
        let answers = race(|racer| {
            let (port, resource) = (repo.port(), resources[racer].clone());
            async move { port.insert_resource(resource).await }
        })
        .await;
        let winners = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(winners, 1, "round {round}");
        for (resource, answer) in resources.iter().zip(&answers) {
            let stored = repo.resource(resource.id).await.unwrap();
            assert_eq!(stored.is_some(), answer.is_ok(), "only the winner is stored");
            if let Err(error) = answer {
                assert_eq!(error.kind(), ErrorKind::Conflict);
                assert_eq!(error.field(), Some("endpoint"));
            }
        }
    }
}

/// RE1: a resource that is being deleted keeps its endpoint.
pub async fn re1_a_deleting_one_keeps_its_endpoint(repo: Repo) {
    let make = Make::new("re1_deleting");
    let first = make.resource("/a/{x}");
    repo.insert_resource(first.clone()).await.unwrap();
    assert!(
        repo.move_resource(first.id, ResourceState::Active, ResourceState::Deleting).await.unwrap()
    );
    let error = repo.insert_resource(make.resource("/a/{other}")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

/// RE1: endpoints that merely overlap do not conflict, and the same resource may come twice.
pub async fn re1_what_does_not_conflict_is_taken(repo: Repo) {
    let make = Make::new("re1_overlap");
    let mut resources: Vec<Resource> =
        ["/a/{x}", "/a/{x}/b", "/a/{x}/{y}", "/a/b/{y}", "/A/{x}"].map(|p| make.resource(p)).into();
    let plain = resources[0].endpoint.as_str().replacen("https", "http", 1);
    let mut other_scheme = make.resource("/a/{x}");
    other_scheme.endpoint = Endpoint::parse(&plain).unwrap();
    resources.push(other_scheme);
    for resource in resources.iter().chain(&resources) {
        repo.insert_resource(resource.clone()).await.unwrap();
    }
}

/// RE2: what was inserted is read back whole, in every state.
pub async fn re2_reads_back_what_was_inserted(repo: Repo) {
    let make = Make::new("re2");
    let parts = [
        ("/a/{x}", "rev", None),
        ("/b/{some name}/caf%C3%A9", "/a~1b/$c.d", Some("2006-01-02T15:04:05Z07:00")),
        ("/c/{x}/{y}", "$updated.at 😀", Some("unix-ms")),
    ];
    for (path, field, format) in parts {
        let mut resource = make.resource(path);
        resource.change = ChangeRule::new(field, format).unwrap();
        repo.insert_resource(resource.clone()).await.unwrap();
        assert_eq!(repo.resource(resource.id).await.unwrap().as_ref(), Some(&resource));
        for state in [ResourceState::Deleting, ResourceState::Deleted] {
            repo.move_resource(resource.id, resource.state, state).await.unwrap();
            resource.state = state;
            assert_eq!(repo.resource(resource.id).await.unwrap().as_ref(), Some(&resource));
        }
    }
    assert_eq!(repo.resource(make.id()).await.unwrap(), None);
}

/// RE3: literals win over wildcards from left to right, with backtracking.
pub async fn re3_the_most_specific_one_matches(repo: Repo) {
    let make = Make::new("re3_specific");
    let paths = ["/a/{x}/{y}", "/a/b/{y}", "/a/{x}/c", "/p/b/{x}/q", "/p/{x}/c/d"];
    let resources = paths.map(|path| make.resource(path));
    for resource in &resources {
        repo.insert_resource(resource.clone()).await.unwrap();
    }
    let cases = [
        ("/a/z/z", Some(0)),
        ("/a/b/c", Some(1)),
        ("/a/z/c", Some(2)),
        ("/p/b/c/q", Some(3)),
        ("/p/b/c/d", Some(4)),
        ("/a/b", None),
        ("/a/b/c/d", None),
        ("/a//c", None),
    ];
    for (path, expected) in cases {
        let expected = expected.map(|index: usize| resources[index].id);
        assert_eq!(matched(&repo, &make.url(path)).await, expected, "{path}");
    }
    let elsewhere = Make::new("re3_elsewhere").url("/a/b/c");
    assert_eq!(matched(&repo, &elsewhere).await, None);
}

/// RE3: of many documents each has its answer, in their order, also those without a resource and
/// those named twice.
pub async fn re3_many_are_matched_in_their_order(repo: Repo) {
    let make = Make::new("re3_many");
    let resources = ["/a/{x}", "/b/{x}", "/b/{x}/{y}"].map(|path| make.resource(path));
    for resource in &resources {
        repo.insert_resource(resource.clone()).await.unwrap();
    }
    let asked = [
        ("/b/1", Some(1)),
        ("/c/1", None),
        ("/a/1", Some(0)),
        ("/b/1/2", Some(2)),
        ("/b/1", Some(1)),
        ("/a/2", Some(0)),
        ("/a", None),
    ];
    let urls = asked.iter().map(|(path, _)| make.url(path)).collect();
    let found = repo.match_resources(urls).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|it| it.first().map(|best| best.id)).collect();
    let expected = asked.map(|(_, index)| index.map(|index: usize| resources[index].id));
    assert_eq!(found, expected);
    assert_eq!(repo.match_resources(Vec::new()).await.unwrap(), Vec::<Vec<Resource>>::new());
}

/// RE3: every resource that matches is named, the most specific one first, whichever came first.
pub async fn re3_all_that_match_come_most_specific_first(repo: Repo) {
    let make = Make::new("re3_all");
    let paths = ["/{x}/{y}/{z}", "/{x}/{y}/c", "/a/{y}/{z}", "/a/b/{z}", "/{x}/b/c", "/{x}/{y}"];
    let resources = paths.map(|path| make.resource(path));
    for index in [5, 2, 0, 4, 3, 1] {
        repo.insert_resource(resources[index].clone()).await.unwrap();
    }
    let asked: [(&str, &[usize]); 5] = [
        ("/a/b/c", &[3, 2, 4, 1, 0]),
        ("/z/b/c", &[4, 1, 0]),
        ("/a/z/z", &[2, 0]),
        ("/a/b/c/d", &[]),
        ("/a/b", &[5]),
    ];
    let all = async || {
        let urls = asked.iter().map(|(path, _)| make.url(path)).collect();
        let found = repo.match_resources(urls).await.unwrap();
        let ids = |matching: Vec<Resource>| matching.into_iter().map(|it| it.id).collect();
        found.into_iter().map(ids).collect::<Vec<Vec<ResourceId>>>()
    };
    let without = |gone: Option<usize>| {
        let ids = |indices: &&[usize]| {
            let left = indices.iter().filter(|index| Some(**index) != gone);
            left.map(|index| resources[*index].id).collect::<Vec<_>>()
        };
        asked.iter().map(|(_, indices)| ids(indices)).collect::<Vec<_>>()
    };
    assert_eq!(all().await, without(None));
    let (active, deleting) = (ResourceState::Active, ResourceState::Deleting);
    assert!(repo.move_resource(resources[2].id, active, deleting).await.unwrap());
    assert_eq!(all().await, without(Some(2)), "one that is deleting matches nothing");
}

/// RE3: only active resources match, each from the moment its insert returned.
pub async fn re3_only_active_ones_match_and_at_once(repo: Repo) {
    let make = Make::new("re3_active");
    let url = make.url("/a/b");
    let matched = async || matched(&repo, &url).await;
    assert_eq!(matched().await, None);
    let wide = make.resource("/{x}/b");
    repo.insert_resource(wide.clone()).await.unwrap();
    assert_eq!(matched().await, Some(wide.id));
    let narrow = make.resource("/a/{x}");
    repo.insert_resource(narrow.clone()).await.unwrap();
    assert_eq!(matched().await, Some(narrow.id));

    use ResourceState::{Active, Deleted, Deleting};
    let steps =
        [(Active, Deleting, wide.id), (Deleting, Active, narrow.id), (Active, Deleting, wide.id)];
    for (from, to, expected) in steps {
        repo.move_resource(narrow.id, from, to).await.unwrap();
        assert_eq!(matched().await, Some(expected), "{to:?}");
    }
    repo.move_resource(narrow.id, Deleting, Deleted).await.unwrap();
    assert_eq!(matched().await, Some(wide.id));
    repo.move_resource(wide.id, Active, Deleting).await.unwrap();
    assert_eq!(matched().await, None);
}

/// RE4: active ones, oldest first, page by page, with their total.
pub async fn re4_lists_active_ones_oldest_first(repo: Repo) {
    let make = Make::new("re4");
    let resources: Vec<Resource> = (0..7).map(|i| make.resource(&format!("/{i}/{{x}}"))).collect();
    for index in [3, 0, 6, 1, 5, 2, 4] {
        repo.insert_resource(resources[index].clone()).await.unwrap();
    }
    use ResourceState::{Active, Deleted, Deleting};
    repo.move_resource(resources[2].id, Active, Deleting).await.unwrap();
    repo.move_resource(resources[4].id, Active, Deleting).await.unwrap();
    repo.move_resource(resources[4].id, Deleting, Deleted).await.unwrap();
    let active = [0, 1, 3, 5, 6].map(|index: usize| resources[index].id);
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (2, 4), (2, 5), (2, 1_000), (1, 3)] {
        let listing = repo.list_resources(Page::new(limit, offset)).await.unwrap();
        assert_eq!(listing.total, 5);
        let ids: Vec<_> = listing.items.iter().map(|resource| resource.id).collect();
        let expected: Vec<_> =
            active.iter().copied().skip(offset as usize).take(limit as usize).collect();
        assert_eq!(ids, expected, "limit {limit}, offset {offset}");
    }
}

/// RE5: a state changes only from the one named, and never out of deleted.
pub async fn re5_moves_only_from_the_state_named(repo: Repo) {
    use ResourceState::{Active, Deleted, Deleting};
    let make = Make::new("re5_moves");
    let resource = make.resource("/a/{x}");
    repo.insert_resource(resource.clone()).await.unwrap();
    let steps = [
        (Deleting, Deleted, false, Active),
        (Deleting, Active, false, Active),
        (Active, Deleting, true, Deleting),
        (Active, Deleting, false, Deleting),
        (Deleting, Active, true, Active),
        (Active, Deleting, true, Deleting),
        (Deleting, Deleted, true, Deleted),
        (Deleting, Deleted, false, Deleted),
        (Deleted, Active, false, Deleted),
        (Deleted, Deleting, false, Deleted),
    ];
    for (from, to, moved, then) in steps {
        let did = repo.move_resource(resource.id, from, to).await.unwrap();
        assert_eq!(did, moved, "{from:?} to {to:?}");
        assert_eq!(repo.resource(resource.id).await.unwrap().unwrap().state, then);
    }
    assert!(!repo.move_resource(make.id(), Active, Deleting).await.unwrap());
}

/// RE5: of moves at once one takes place.
pub async fn re5_one_of_many_moves_takes_place(repo: Repo) {
    let make = Make::new("re5_race");
    for round in 0..8 {
        let resource = make.resource(&format!("/{round}/{{x}}"));
        repo.insert_resource(resource.clone()).await.unwrap();
        let moves =
            race(|_| {
                let (port, id) = (repo.port(), resource.id);
                async move {
                    port.move_resource(id, ResourceState::Active, ResourceState::Deleting).await
                }
            })
            .await;
        let moved = moves.into_iter().filter(|moved| *moved.as_ref().unwrap()).count();
        assert_eq!(moved, 1);
    }
}

/// RE5: a deleted resource's endpoint is free again.
pub async fn re5_a_deleted_one_frees_its_endpoint(repo: Repo) {
    let make = Make::new("re5_free");
    for _ in 0..3 {
        let resource = make.resource("/a/{x}");
        repo.insert_resource(resource.clone()).await.expect("the endpoint is free");
        delete_resource(&repo, &resource).await;
    }
}

/// RE6: only a deleted resource is forgotten, and its successor stays.
pub async fn re6_forgets_only_deleted_ones(repo: Repo) {
    let make = Make::new("re6");
    let old = make.resource("/a/{x}");
    repo.insert_resource(old.clone()).await.unwrap();
    repo.remove_resource(old.id).await.unwrap();
    assert!(repo.resource(old.id).await.unwrap().is_some(), "an active one stays");
    repo.move_resource(old.id, ResourceState::Active, ResourceState::Deleting).await.unwrap();
    repo.remove_resource(old.id).await.unwrap();
    assert!(repo.resource(old.id).await.unwrap().is_some(), "a deleting one stays");
    repo.move_resource(old.id, ResourceState::Deleting, ResourceState::Deleted).await.unwrap();

    let new = make.resource("/a/{y}");
    repo.insert_resource(new.clone()).await.unwrap();
    repo.remove_resource(old.id).await.unwrap();
    assert!(repo.resource(old.id).await.unwrap().is_none(), "a deleted one is forgotten");
    repo.remove_resource(old.id).await.unwrap();
    repo.remove_resource(make.id()).await.unwrap();
    assert_eq!(matched(&repo, &make.url("/a/b")).await, Some(new.id), "its successor stays");
}

/// The resource one document belongs to.
async fn matched(repo: &Repo, url: &DocumentUrl) -> Option<ResourceId> {
    let found = repo.match_resources(vec![url.clone()]).await.unwrap();
    assert_eq!(found.len(), 1, "one answer per URL");
    found.into_iter().flatten().next().map(|best| best.id)
}

async fn delete_resource(repo: &Repo, resource: &Resource) {
    use ResourceState::{Active, Deleted, Deleting};
    for (from, to) in [(Active, Deleting), (Deleting, Deleted)] {
        assert!(repo.move_resource(resource.id, from, to).await.unwrap());
    }
}
