//! The demo: a cluster in this process, an app, its users, and two releases — one good, one bad.
//!
//! ```text
//! ground   starts the cluster and the operator
//! users    those who use the app all the while
//! story    what happens, chapter by chapter
//! model    what was seen, as one value                      (pure)
//! summary  how it ended, and whether that is as told        (pure)
//! narrate  tells it: a live screen, plain lines or JSON
//! ```
//!
//! Nothing here is special: the manifests are those of `examples/gateway-api`, the operator is the one that runs in a
//! cluster, and it is watched through the same API, with the same eyes ([`crate::watch`]), as any other canary.

pub mod ground;
pub mod model;
pub mod narrate;
pub mod story;
pub mod summary;
pub mod users;
