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

/// What north gets of a hundred requests, beside south.
pub const WEIGHTS: [u32; 5] = [0, 10, 35, 50, 100];

/// Routes of that many seeds, and one for each weight, by their names.
pub fn all(seeds: u64) -> Vec<(String, Value)> {
    let drawn = (0..seeds).map(|seed| (name(seed), route(seed)));
    let weighted = WEIGHTS.into_iter().enumerate().map(|(index, weight)| {
        let refs = [("north", weight), ("south", 100 - weight)];
        let refs = refs.map(|(name, weight)| json!({"name": name, "port": 8080, "weight": weight}));
        let name = format!("weighted-{index}");
        (name.clone(), with_rules(&name, &weighted_host(index), &json!([{"backendRefs": refs}])))
    });
    drawn.chain(weighted).collect()
}

pub fn weighted_host(index: usize) -> String {
    format!("weighted-{index}.example.com")
}

fn name(seed: u64) -> String {
    format!("route-{seed}")
}

fn host(seed: u64) -> String {
    format!("route-{seed}.example.com")
}

/// The host that people name: half of them came through a port that no gateway knows of.
pub fn asked_host(seed: u64) -> String {
    let port = if seed.is_multiple_of(2) { "" } else { ":9999" };
    format!("{}{port}", host(seed))
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

/// A route of one to three rules.
pub fn route(seed: u64) -> Value {
    let mut lots = Lots(seed);
    let rules: Vec<Value> = (0..=lots.draw(3)).map(|_| rule(&mut lots)).collect();
    with_rules(&name(seed), &host(seed), &json!(rules))
}

/// A route on all three gateways.
fn with_rules(name: &str, host: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "test"},
        "spec": {
            "parentRefs": [
                {"name": "gateway", "namespace": "traefik"},
                {"name": "gateway", "namespace": "projectcontour"},
                {"name": "drydock"},
            ],
            "hostnames": [host],
            "rules": rules,
        },
    })
}

fn rule(lots: &mut Lots) -> Value {
    let matches: Vec<Value> = (0..=lots.draw(2)).map(|_| matching(lots)).collect();
    // Only then is it clear which prefix is replaced.
    let prefixed = matches.len() == 1 && matches[0]["path"]["type"] == "PathPrefix";
    if lots.sometimes() {
        return json!({"matches": matches, "filters": [redirect(lots, prefixed)]});
    }
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
    // Traefik answers many requests that are copied with 500, Contour leaves out some rules that change the path: where a rule
    // does both, nobody is right.
    match lots.draw(5) {
        0 | 1 => filters.push(json!({"type": "URLRewrite", "urlRewrite": {"path": new_path(lots, prefixed)}})),
        2 => filters.push(json!({"type": "RequestMirror", "requestMirror": {"backendRef": backend(lots)}})),
        _ => {}
    }
    json!({"matches": matches, "filters": filters, "backendRefs": [backend(lots)]})
}

fn backend(lots: &mut Lots) -> Value {
    json!({"name": lots.one_of(&["north", "south"]), "port": 8080})
}

fn new_path(lots: &mut Lots, prefixed: bool) -> Value {
    if prefixed && lots.sometimes() {
        json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"})
    } else {
        json!({"type": "ReplaceFullPath", "replaceFullPath": "/whole"})
    }
}

fn redirect(lots: &mut Lots, prefixed: bool) -> Value {
    let mut all = json!({"statusCode": lots.one_of(&[301, 302])});
    if lots.sometimes() {
        all["scheme"] = json!("https");
    }
    if lots.sometimes() {
        all["hostname"] = json!("elsewhere.example.com");
    }
    if lots.sometimes() {
        all["port"] = json!(8443);
    }
    if lots.sometimes() {
        all["path"] = new_path(lots, prefixed);
    }
    json!({"type": "RequestRedirect", "requestRedirect": all})
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
