//! HTTPRoutes from seeds, and the requests that tell them apart.

use http::Method;
use serde_json::{Value, json};

/// A request that is sent to every gateway.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub uri: String,
    pub headers: Vec<(&'static str, &'static str)>,
}

/// Every combination of what routes look at.
pub fn requests() -> Vec<Asked> {
    let mut all = Vec::new();
    for path in ["/", "/a", "/a/", "/ab", "/a/b", "/a/b/c"] {
        for query in ["", "?v=1", "?v=2&w=1"] {
            for headers in [vec![], vec![("x-test-team", "red")], vec![("x-test-team", "blue")]] {
                for method in [Method::GET, Method::POST] {
                    all.push(Asked { method, uri: format!("{path}{query}"), headers: headers.clone() });
                }
            }
        }
    }
    all
}

pub fn name(seed: u64) -> String {
    format!("route-{seed}")
}

pub fn host(seed: u64) -> String {
    format!("route-{seed}.example.com")
}

/// Draws numbers; the same seed draws the same.
struct Lots(u64);

impl Lots {
    fn draw(&mut self, below: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.draw(all.len() as u64)).unwrap()].clone()
    }

    fn sometimes(&mut self) -> bool {
        self.draw(3) == 0
    }
}

/// A route of one to three rules, on all three gateways.
pub fn route(seed: u64) -> Value {
    let mut lots = Lots(seed);
    let rules: Vec<Value> = (0..=lots.draw(3)).map(|_| rule(&mut lots)).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name(seed), "namespace": "test"},
        "spec": {
            "parentRefs": [
                {"name": "gateway", "namespace": "traefik"},
                {"name": "gateway", "namespace": "projectcontour"},
                {"name": "drydock"},
            ],
            "hostnames": [host(seed)],
            "rules": rules,
        },
    })
}

fn rule(lots: &mut Lots) -> Value {
    let matches: Vec<Value> = (0..=lots.draw(2)).map(|_| matching(lots)).collect();
    // Only then is it clear which prefix is replaced.
    let prefixed = matches.len() == 1 && matches[0]["path"]["type"] == "PathPrefix";
    let mut filters = Vec::new();
    if lots.sometimes() {
        filters.push(json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{"name": "x-test-set", "value": "1"}], "remove": ["x-test-team"],
        }}));
    }
    if lots.sometimes() {
        filters.push(json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {
            "set": [{"name": "x-test-answer", "value": "gateway"}],
        }}));
    }
    if lots.sometimes() {
        let path = if prefixed && lots.sometimes() {
            json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"})
        } else {
            json!({"type": "ReplaceFullPath", "replaceFullPath": "/whole"})
        };
        filters.push(json!({"type": "URLRewrite", "urlRewrite": {"path": path}}));
    }
    json!({
        "matches": matches,
        "filters": filters,
        "backendRefs": [{"name": lots.one_of(&["north", "south"]), "port": 8080}],
    })
}

fn matching(lots: &mut Lots) -> Value {
    let kind = lots.one_of(&["PathPrefix", "Exact"]);
    let mut all = json!({"path": {"type": kind, "value": lots.one_of(&["/", "/a", "/a/b"])}});
    if lots.sometimes() {
        all["headers"] = json!([{"name": "x-test-team", "value": "red"}]);
    }
    if lots.sometimes() {
        all["queryParams"] = json!([{"name": "v", "value": "1"}]);
    }
    if lots.sometimes() {
        all["method"] = json!("POST");
    }
    all
}
