//! L11: prefixes are bytes, not directories, patterns or words.

use flare_core::port::Lease;

use crate::Subject;

const KEYS: [&str; 8] = [
    "l11/node",
    "l11/node/1",
    "l11/node1",
    "l11/nod",
    "l11/Node/1",
    "l11/n_de/1",
    "l11/n%/1",
    "l11/nöde",
];

/// A prefix, and which of the keys are under it.
const CASES: [(&str, &[usize]); 7] = [
    ("l11/node", &[0, 1, 2]),
    ("l11/node/", &[1]),
    ("l11/n_de", &[5]),
    ("l11/n%", &[6]),
    ("l11/nö", &[7]),
    ("l11/.*", &[]),
    ("l11/", &[0, 1, 2, 3, 4, 5, 6, 7]),
];

fn expected(indexes: &[usize]) -> Vec<String> {
    let mut keys: Vec<_> = indexes.iter().map(|&index| KEYS[index].to_owned()).collect();
    keys.sort();
    keys
}

/// A list has the keys that begin with the prefix.
pub async fn l11_list_takes_prefixes_byte_for_byte(subject: Subject<dyn Lease>) {
    for key in KEYS {
        subject.put(key, "here").await;
    }
    for (prefix, indexes) in CASES {
        let listed = subject.list(prefix).await.expect("keys can be listed").entries;
        let mut listed: Vec<_> = listed.into_iter().map(|entry| entry.key).collect();
        listed.sort();
        assert_eq!(listed, expected(indexes), "under {prefix}");
    }
}

/// A watch tells of the keys that begin with the prefix.
pub async fn l11_watch_takes_prefixes_byte_for_byte(subject: Subject<dyn Lease>) {
    let from = subject.revision().await;
    for key in KEYS {
        subject.put(key, "here").await;
    }
    for (prefix, indexes) in CASES {
        let mut watch = subject.watch(prefix, from);
        let mut told = Vec::new();
        while told.len() < indexes.len() {
            let key = subject.event(&mut watch, super::bench::PATIENCE).await.key;
            if !told.contains(&key) {
                told.push(key);
            }
        }
        told.sort();
        assert_eq!(told, expected(indexes), "under {prefix}");
    }
}
