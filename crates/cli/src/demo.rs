//! The demo: a cluster in this process, an app, its users, and two releases — one good, one bad.
//!
//! ```text
//! ground   starts the cluster and the operator
//! users    those who use the app all the while
//! story    what happens, chapter by chapter
//! sights   what can be seen of it: Canary, HTTPRoute, Events, requests
//! model    what was seen, as one value                      (pure)
//! summary  how it ended, and whether that is as told        (pure)
//! narrate  tells it: a live screen, plain lines or JSON
//! ```
//!
//! Nothing here is special: the manifests are those of `examples/gateway-api`, the operator is the one that runs in a
//! cluster, and it is watched through the same API that `kubectl` uses.

pub mod ground;
pub mod model;
pub mod narrate;
pub mod sights;
pub mod story;
pub mod summary;
pub mod users;
