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

/// So many routes are drawn; after them come the written ones.
const DRAWN: u64 = 60;

/// How many routes there are to ask.
pub fn count() -> u64 {
    DRAWN + written().len() as u64
}

/// Rules for what is seldom asked of gateways, or in so many ways that lots would seldom meet it.
fn written() -> Vec<Value> {
    let leading = |matches: Value, filters: Value| {
        let south = json!({"backendRefs": [{"name": "south", "port": 8080}]});
        let backends = json!([{"name": "north", "port": 8080}]);
        json!([{"matches": [matches], "filters": filters, "backendRefs": backends}, south])
    };
    let pattern = |value: &str| json!({"path": {"type": "RegularExpression", "value": value}});
    let team = |value: &str| json!({"headers": [{"name": "x-test-team", "type": "RegularExpression", "value": value}]});
    let asks = |changes: Value| json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": changes}]);
    let answers = |changes: Value| json!([{"type": "ResponseHeaderModifier", "responseHeaderModifier": changes}]);
    vec![
        leading(pattern("/a/[bc].*"), json!([])),
        leading(pattern("/a"), json!([])),
        leading(team("re.|green"), json!([])),
        leading(team("blu"), json!([])),
        leading(json!({"queryParams": [{"name": "v", "type": "RegularExpression", "value": "[12]"}]}), json!([])),
        leading(json!({}), asks(json!({"add": [{"name": "x-test-team", "value": "more"}]}))),
        leading(
            json!({}),
            asks(
                json!({"set": [{"name": "x-test-team", "value": "one"}], "add": [{"name": "x-test-new", "value": "two"}]}),
            ),
        ),
        leading(json!({}), answers(json!({"add": [{"name": "x-test-answer", "value": "gateway"}]}))),
        leading(json!({}), answers(json!({"remove": ["x-test-answer"]}))),
        leading(json!({}), json!([{"type": "URLRewrite", "urlRewrite": {"hostname": "elsewhere.example.com"}}])),
    ]
}

/// Every route to ask, and one for each weight, by their names.
pub fn all() -> Vec<(String, Value)> {
    let asked = (0..count()).map(|number| (name(number), route(number)));
    let weighted = WEIGHTS.into_iter().enumerate().map(|(index, weight)| {
        let refs = [("north", weight), ("south", 100 - weight)];
        let refs = refs.map(|(name, weight)| json!({"name": name, "port": 8080, "weight": weight}));
        let name = format!("weighted-{index}");
        (name.clone(), with_rules(&name, &weighted_host(index), &json!([{"backendRefs": refs}])))
    });
    asked.chain(weighted).collect()
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

/// A route of one to three rules that are drawn, or one that is written.
pub fn route(number: u64) -> Value {
    let written =
        number.checked_sub(DRAWN).and_then(|number| written().into_iter().nth(usize::try_from(number).unwrap()));
    let rules = written.unwrap_or_else(|| {
        let mut lots = Lots(number);
        (0..=lots.draw(3)).map(|_| rule(&mut lots)).collect()
    });
    with_rules(&name(number), &host(number), &rules)
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
