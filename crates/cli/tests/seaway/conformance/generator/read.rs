//! Get, list and watch.

use super::super::kinds::Kind;
use super::{Author, Body, quoted};

const LABELS: &[&str] = &[
    "app=x",
    "app!=x",
    "app in (x,y)",
    "app notin (x)",
    "!app",
    "app",
    "app==y,run",
    "none=here",
    "app in (x",
    "bad key!=1",
    "app=bad value!",
    "=x",
    "app>1",
    "app gt x",
];

pub(super) fn get(author: &mut Author) {
    let thing = author.thing();
    let name = if author.once_in(8) { "none".to_owned() } else { thing.name.clone() };
    let mut path = format!("{}/{name}", thing.kind.path());
    match author.below(12) {
        0 => {
            settle(author, thing.kind);
            path += "?resourceVersion=0";
        }
        1 => path = format!("{path}?resourceVersion=<<{}.rv>>", thing.seen),
        2 if author.once_in(3) => path += "?resourceVersion=abc",
        _ => {}
    }
    author.read(path);
}

/// What is read "at any version" may be old on a real server. After a consistent list it is not.
fn settle(author: &mut Author, kind: &Kind) {
    let headers = vec![("accept", "application/json".to_owned())];
    let path = kind.listing();
    author.send("GET", path.trim_end_matches('?').to_owned(), headers, Body::Text(String::new()));
}

fn selectors(author: &Author, kind: &Kind) -> String {
    match author.below(5) {
        0 | 1 => format!("labelSelector={}", quoted(author.word(LABELS))),
        2 => format!("fieldSelector={}", quoted(author.word(kind.selectable))),
        3 if author.once_in(4) => "fieldSelector=nonsense".to_owned(),
        _ => String::new(),
    }
}

pub(super) fn list(author: &mut Author) {
    let kind = author.kind();
    let query = selectors(author, kind);
    if author.once_in(6) {
        author.read(format!("{}?labelSelector=run%3D<<ns>>", kind.everywhere()));
        return;
    }
    author.read(format!("{}?{query}", kind.path()));
}

pub(super) fn pages(author: &mut Author) {
    let kind = author.kind();
    let limit = 1 + author.below(2);
    let query = selectors(author, kind);
    let base = format!("{}?limit={limit}&{query}", kind.path());
    let headers = vec![("accept", "application/json".to_owned())];
    let first = author.send("GET", base.clone(), headers, Body::Text(String::new()));
    match author.below(6) {
        0 => author.read(format!("{base}&continue=nonsense")),
        1 => author.read(format!("{base}&continue=<<{first}.continue>>&resourceVersion=1")),
        2 => author.read(format!("{base}&continue=<<{first}.continue>>&resourceVersionMatch=Exact")),
        _ => author.read(format!("{base}&continue=<<{first}.continue>>")),
    };
}

pub(super) fn versions(author: &mut Author) {
    let thing = author.thing();
    let version = match author.below(8) {
        0 => "abc".to_owned(),
        1 | 2 => {
            settle(author, thing.kind);
            "0".to_owned()
        }
        3 => String::new(),
        _ => format!("<<{}.rv>>", thing.seen),
    };
    let wanted = author.pick(&[
        "",
        "",
        "&resourceVersionMatch=NotOlderThan",
        "&resourceVersionMatch=Exact",
        "&resourceVersionMatch=Other",
    ]);
    let limit = if author.once_in(4) { "&limit=1" } else { "" };
    author.read(format!("{}resourceVersion={version}{wanted}{limit}", thing.kind.listing()));
}

/// A version that no server will ever have.
const FAR_AWAY: &str = "&resourceVersion=999999999";

/// A watch is open while the rest of the script runs.
pub(super) fn watch(author: &mut Author) {
    let thing = author.thing();
    let kind = thing.kind;
    let mut query = "watch=1&timeoutSeconds=1".to_owned();
    match author.below(10) {
        0 => {
            settle(author, kind);
            query += "&resourceVersion=0";
        }
        1 => settle(author, kind),
        2 => {
            query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            if author.once_in(2) {
                query = format!("{query}&resourceVersion=<<{}.rv>>", thing.seen);
            }
        }
        3 => query = format!("{query}&resourceVersion=<<{}.rv>>&allowWatchBookmarks=true", thing.seen),
        4 if author.once_in(2) => {
            query += author.word(&[
                "&resourceVersion=abc",
                FAR_AWAY,
                "&sendInitialEvents=true",
                "&resourceVersionMatch=NotOlderThan",
                "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0",
            ]);
        }
        _ => query = format!("{query}&resourceVersion=<<{}.rv>>", thing.seen),
    }
    query = format!("{query}&{}", selectors(author, kind));
    let place = match author.below(6) {
        // That is a plain read, which clients ask again and again for minutes when it comes too early.
        0 if !query.contains(FAR_AWAY) => format!("{}/{}", kind.path(), thing.name),
        at if at == 1 || kind.is_cluster_wide() => {
            query = "watch=1&timeoutSeconds=1&labelSelector=run%3D<<ns>>".to_owned()
                + &format!("&resourceVersion=<<{}.rv>>", thing.seen);
            kind.everywhere()
        }
        _ => kind.path(),
    };
    // The metadata of a list is no form for events.
    let accept = author.accept().replace("MetadataList", "Metadata");
    author.send("GET", format!("{place}?{query}"), vec![("accept", accept)], Body::Text(String::new()));
}
