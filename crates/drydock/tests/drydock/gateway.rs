//! The gateway, seen by clients and by those who read statuses.

#![allow(clippy::needless_pass_by_value)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;
use seaway_drydock::Wire;
use seaway_drydock::proxy::{self, Mesh, Proxy};
use seaway_drydock::telemetry::Telemetry;
use serde_json::{Value, json};

use crate::yard::{Answer, Yard, request, until};

fn to(backends: Value) -> Value {
    json!([{"backendRefs": backends}])
}

fn condition<'c>(conditions: &'c [Value], kind: &str) -> &'c Value {
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[tokio::test(start_paused = true)]
async fn weights_are_exact_and_change_with_the_route() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "primary", 1, 2).await;
    yard.app("test", "canary", 2, 1).await;
    let split = |primary: u32, canary: u32| {
        to(
            json!([{"name": "primary", "port": 80, "weight": primary}, {"name": "canary", "port": 80, "weight": canary}]),
        )
    };
    yard.route("podinfo", split(90, 10)).await;
    assert_eq!(yard.count(1000, "canary").await, 100);
    for (primary, canary) in [(100, 0), (50, 50), (0, 100)] {
        yard.patch_route("podinfo", json!({"spec": {"rules": split(primary, canary)}})).await;
        // The status was written after the data plane changed: the very next request obeys.
        assert_eq!(yard.count(100, "canary").await, canary as usize, "{primary}/{canary}");
    }
    let answer = yard.get("/").await;
    assert_eq!(answer.header("x-drydock-upstream"), "test/canary-0");
}

#[tokio::test(start_paused = true)]
async fn a_change_elsewhere_does_not_restart_the_round_robin() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "primary", 1, 1).await;
    yard.app("test", "canary", 2, 1).await;
    let rules = to(json!([{"name": "primary", "port": 80, "weight": 9}, {"name": "canary", "port": 80, "weight": 1}]));
    yard.route("podinfo", rules).await;
    let mut canary = 0;
    for round in 0..10 {
        canary += yard.count(1, "canary").await;
        yard.app("other", &format!("noise-{round}"), 100 + round, 0).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(canary, 1);
}

#[tokio::test(start_paused = true)]
async fn the_more_specific_match_wins() {
    let mut yard = Yard::with_gateway().await;
    for (index, app) in ["root", "exact", "long", "header", "query", "method", "regex"].iter().enumerate() {
        yard.app("test", app, u8::try_from(index).unwrap() + 1, 1).await;
    }
    let rule = |app: &str, matches: Value| json!({"matches": [matches], "backendRefs": [{"name": app, "port": 80}]});
    let prefix = |value: &str| json!({"type": "PathPrefix", "value": value});
    yard.route(
        "table",
        json!([
            rule("regex", json!({"path": {"type": "RegularExpression", "value": "/[0-9]+"}})),
            rule("root", json!({"path": prefix("/")})),
            rule("query", json!({"path": prefix("/a"), "queryParams": [{"name": "q", "value": "1"}]})),
            rule("header", json!({"path": prefix("/a"), "headers": [{"name": "x-user", "value": "insider"}]})),
            rule("method", json!({"path": prefix("/a"), "method": "DELETE"})),
            rule("long", json!({"path": prefix("/a/b")})),
            rule("exact", json!({"path": {"type": "Exact", "value": "/a/b"}})),
        ]),
    )
    .await;
    for (method, target, insider, expected) in [
        ("GET", "/", false, "root"),
        ("GET", "/ab", false, "root"),
        ("GET", "/a/b", false, "exact"),
        ("GET", "/a/b/", false, "long"),
        ("GET", "/a/b/c", true, "long"),
        ("GET", "/a", true, "header"),
        ("GET", "/a?q=1", true, "header"),
        ("GET", "/a?q=1", false, "query"),
        ("GET", "/a?q=2", false, "root"),
        ("DELETE", "/a?q=1", true, "method"),
        ("GET", "/12", false, "regex"),
    ] {
        let mut request = request(target);
        *request.method_mut() = method.parse().unwrap();
        if insider {
            request.headers_mut().insert("x-user", "insider".parse().unwrap());
        }
        let answer = yard.send(request).await;
        assert_eq!(answer.header("x-podinfo-version"), expected, "{method} {target} {insider}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_matches_go_to_the_older_route_then_to_the_first_name() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "one", 1, 1).await;
    yard.app("test", "two", 2, 1).await;
    yard.route("zz", to(json!([{"name": "one", "port": 80}]))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    yard.route("aa", to(json!([{"name": "two", "port": 80}]))).await;
    assert_eq!(yard.get("/").await.header("x-podinfo-version"), "one");
}

#[tokio::test(start_paused = true)]
async fn hosts_choose_listener_and_route() {
    let mut yard = Yard::start().await;
    let all = json!({"namespaces": {"from": "All"}});
    yard.gateway(json!([
        {"name": "wide", "port": 80, "protocol": "HTTP", "allowedRoutes": all},
        {"name": "narrow", "hostname": "*.example.com", "port": 80, "protocol": "HTTP", "allowedRoutes": all},
    ]))
    .await;
    for (index, app) in ["any", "wild", "exact"].iter().enumerate() {
        yard.app("test", app, u8::try_from(index).unwrap() + 1, 1).await;
    }
    for (name, hostnames, section) in [
        ("any", json!([]), "wide"),
        ("wild", json!(["*.example.com"]), "narrow"),
        ("exact", json!(["www.example.com"]), "narrow"),
    ] {
        let spec = json!({
            "parentRefs": [{"name": "gateway", "namespace": "istio-ingress", "sectionName": section}],
            "hostnames": hostnames,
            "rules": to(json!([{"name": name, "port": 80}])),
        });
        yard.create("v1", "HTTPRoute", "test", name, spec).await;
        yard.observed(name).await;
    }
    for (host, expected) in [
        ("www.example.com", "exact"),
        ("WWW.EXAMPLE.COM:80", "exact"),
        ("api.example.com", "wild"),
        ("a.b.example.com", "wild"),
        ("example.com", "any"),
        ("other.org", "any"),
    ] {
        let request = Request::get("/").header("host", host).body(proxy::empty()).unwrap();
        assert_eq!(yard.send(request).await.header("x-podinfo-version"), expected, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_of_its_own_are_signed() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "empty", 1, 0).await;
    yard.app("test", "full", 2, 1).await;
    let exact = |path: &str| json!([{"path": {"type": "Exact", "value": path}}]);
    yard.route(
        "podinfo",
        json!([
            {"matches": exact("/empty"), "backendRefs": [{"name": "empty", "port": 80}]},
            {"matches": exact("/missing"), "backendRefs": [{"name": "missing", "port": 80}]},
            {"matches": exact("/port"), "backendRefs": [{"name": "full", "port": 81}]},
            {"matches": exact("/zero"), "backendRefs": [{"name": "full", "port": 80, "weight": 0}]},
            {"matches": exact("/none")},
        ]),
    )
    .await;
    for (target, status) in
        [("/empty", 503), ("/missing", 500), ("/port", 500), ("/zero", 500), ("/none", 500), ("/elsewhere", 404)]
    {
        let answer = yard.get(target).await;
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(answer.header("server"), "drydock-gateway");
        assert_eq!(answer.header("x-drydock-upstream"), "");
    }
    let conditions = yard.observed("podinfo").await;
    assert_eq!(condition(&conditions, "Accepted")["status"], "True");
    assert_eq!(condition(&conditions, "ResolvedRefs")["reason"], "BackendNotFound");
    // A Service that appears heals the route without anyone touching it.
    yard.app("test", "missing", 3, 1).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(yard.get("/missing").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn filters_change_requests_and_answers() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 1).await;
    yard.route(
        "podinfo",
        json!([{
            "matches": [{"path": {"type": "PathPrefix", "value": "/old"}}],
            "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-api", "value": "v1"}], "remove": ["x-debug"]}},
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [{"name": "x-frame-options", "value": "DENY"}], "remove": ["x-powered-by"]}},
                {"type": "URLRewrite", "urlRewrite": {"hostname": "api.internal", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}}},
                {"type": "CORS", "cors": {"allowOrigins": ["https://foo.example"], "allowMethods": ["GET"]}},
            ],
            "backendRefs": [{"name": "app", "port": 80, "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "x-backend", "value": "app"}]}},
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "x-from", "value": "app"}]}},
            ]}],
        }, {
            "matches": [{"path": {"type": "PathPrefix", "value": "/away"}}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}],
        }]),
    )
    .await;
    let mut request = request("/old/path?q=1");
    request.headers_mut().insert("x-debug", "1".parse().unwrap());
    request.headers_mut().insert("origin", "https://foo.example".parse().unwrap());
    let answer = yard.send(request).await;
    let echo = answer.echo();
    assert_eq!(echo["target"], "/new/path?q=1");
    assert_eq!(echo["headers"]["host"], "api.internal");
    assert_eq!(echo["headers"]["x-api"], "v1");
    assert_eq!(echo["headers"]["x-backend"], "app");
    assert_eq!(echo["headers"]["x-debug"], Value::Null);
    assert_eq!(answer.header("x-frame-options"), "DENY");
    assert_eq!(answer.header("x-from"), "app");
    assert_eq!(answer.header("x-powered-by"), "");
    assert_eq!(answer.header("access-control-allow-origin"), "https://foo.example");

    let redirect = yard.get("/away/x?y=z").await;
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (StatusCode::MOVED_PERMANENTLY, "https://www.example.com/away/x?y=z")
    );
}

#[tokio::test(start_paused = true)]
async fn a_mirror_gets_copies_and_nobody_waits_for_it() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "primary", 1, 1).await;
    yard.app("test", "canary", 2, 1).await;
    let mirror = |percent: u32| {
        json!([{
            "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "canary", "port": 80}, "percent": percent}}],
            "backendRefs": [{"name": "primary", "port": 80}],
        }])
    };
    yard.route("podinfo", mirror(100)).await;
    let post = Request::post("/delay/0").header("host", "www.example.com").body(proxy::full("hello")).unwrap();
    let answer = yard.send(post).await;
    assert_eq!(answer.echo()["body"], "hello");
    assert_eq!(answer.header("x-drydock-upstream"), "test/primary-0");
    let copies = |yard: &Yard| yard.seen.lock().unwrap().iter().filter(|line| line.starts_with("canary")).count();
    until(|| copies(&yard) == 1).await;

    yard.patch_route("podinfo", json!({"spec": {"rules": mirror(30)}})).await;
    for _ in 0..100 {
        assert_eq!(yard.get("/").await.status, 200);
    }
    until(|| copies(&yard) == 31).await;

    // The mirror is dead: the client does not notice.
    yard.endpoints("test", "canary", &["10.244.99.99".parse::<IpAddr>().unwrap()]).await;
    yard.patch_route("podinfo", json!({"spec": {"rules": mirror(100)}})).await;
    assert_eq!(yard.get("/").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn time_limits_answer_504() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 1).await;
    let rule = |path: &str, timeouts: Value| {
        json!({
            "matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/delay/1"}}}],
            "timeouts": timeouts, "backendRefs": [{"name": "app", "port": 80}],
        })
    };
    yard.route(
        "podinfo",
        json!([
            rule("/request", json!({"request": "500ms"})),
            rule("/backend", json!({"request": "5s", "backendRequest": "500ms"})),
            rule("/enough", json!({"request": "2s"})),
            rule("/zero", json!({"request": "0s"})),
        ]),
    )
    .await;
    for (target, status) in [("/request", 504), ("/backend", 504), ("/enough", 200), ("/zero", 200)] {
        let answer = yard.get(target).await;
        assert_eq!(answer.status, status, "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_refuses_is_tried_no_further_than_the_next() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 1).await;
    yard.route("podinfo", to(json!([{"name": "app", "port": 80}]))).await;
    let dead: IpAddr = "10.244.1.200".parse().unwrap();
    yard.endpoints("test", "app", &["10.244.1.0".parse().unwrap(), dead]).await;
    until(|| yard.names.resolve("app.test", 80).is_ok_and(|all| all.len() == 2)).await;
    for _ in 0..10 {
        assert_eq!(yard.get("/").await.status, 200);
    }
    yard.endpoints("test", "app", &[dead]).await;
    until(|| yard.names.resolve("app.test", 80).is_ok_and(|all| all.len() == 1)).await;
    assert_eq!(yard.get("/").await.status, 503);
}

#[tokio::test(start_paused = true)]
async fn another_namespace_must_grant() {
    let mut yard = Yard::with_gateway().await;
    yard.app("other", "app", 1, 1).await;
    yard.route("podinfo", to(json!([{"name": "app", "namespace": "other", "port": 80}]))).await;
    assert_eq!(condition(&yard.observed("podinfo").await, "ResolvedRefs")["reason"], "RefNotPermitted");
    assert_eq!(yard.get("/").await.status, 500);
    let grant = json!({
        "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "test"}],
        "to": [{"group": "", "kind": "Service"}],
    });
    yard.create("v1beta1", "ReferenceGrant", "other", "grant", grant).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(yard.get("/").await.status, 200);
    assert_eq!(condition(&yard.observed("podinfo").await, "ResolvedRefs")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn listeners_decide_whose_routes_they_take() {
    let mut yard = Yard::start().await;
    yard.gateway(json!([{
        "name": "default", "port": 80, "protocol": "HTTP",
        "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}},
    }, {
        "name": "same", "port": 81, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "Same"}},
    }, {
        "name": "tls", "port": 443, "protocol": "HTTPS",
    }]))
    .await;
    yard.app("test", "app", 1, 1).await;
    yard.route("podinfo", to(json!([{"name": "app", "port": 80}]))).await;
    assert_eq!(yard.get("/").await.status, 200);
    for (name, parent, reason) in [
        (
            "not-allowed",
            json!({"name": "gateway", "namespace": "istio-ingress", "sectionName": "same"}),
            "NotAllowedByListeners",
        ),
        (
            "no-section",
            json!({"name": "gateway", "namespace": "istio-ingress", "sectionName": "nope"}),
            "NoMatchingParent",
        ),
    ] {
        let spec = json!({"parentRefs": [parent], "rules": to(json!([{"name": "app", "port": 80}]))});
        yard.create("v1", "HTTPRoute", "test", name, spec).await;
        assert_eq!(condition(&yard.observed(name).await, "Accepted")["reason"], reason);
    }
    let gateway = yard.dynamic("v1", "Gateway", "istio-ingress").get("gateway").await.unwrap();
    let listeners = &gateway.data["status"]["listeners"];
    assert_eq!(listeners[0]["attachedRoutes"], 1);
    assert_eq!(listeners[1]["attachedRoutes"], 0);
    assert_eq!(listeners[2]["conditions"][0]["reason"], "UnsupportedProtocol");
}

#[tokio::test(start_paused = true)]
async fn statuses_are_written_once_and_then_never_again() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 2).await;
    yard.route("podinfo", to(json!([{"name": "app", "port": 80}]))).await;
    let services: Api<Service> = Api::namespaced(yard.client.clone(), "istio-ingress");
    let service = services.get("gateway-istio").await.unwrap();
    let ingress = service.status.unwrap().load_balancer.unwrap().ingress.unwrap();
    let address = service.spec.unwrap().cluster_ip.unwrap();
    assert_eq!(ingress[0].ip.as_ref(), Some(&address));
    assert_eq!(ingress[0].hostname.as_deref(), Some("gateway-istio.istio-ingress.svc.cluster.local"));

    tokio::time::sleep(Duration::from_millis(50)).await;
    let gateway = yard.dynamic("v1", "Gateway", "istio-ingress").get("gateway").await.unwrap();
    let status = &gateway.data["status"];
    assert_eq!(status["addresses"], json!([{"type": "IPAddress", "value": address}]));
    for kind in ["Accepted", "Programmed"] {
        assert_eq!(condition(status["conditions"].as_array().unwrap(), kind)["status"], "True");
    }
    assert_eq!(status["listeners"][0]["attachedRoutes"], 1);
    let route = yard.dynamic("v1", "HTTPRoute", "test").get("podinfo").await.unwrap();
    let parent = &route.data["status"]["parents"][0];
    assert_eq!(parent["controllerName"], "istio.io/gateway-controller");
    assert_eq!(parent["parentRef"], route.data["spec"]["parentRefs"][0]);
    assert_eq!(yard.writes("gateway", "httproutes"), 1);

    yard.api.log().clear();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let asked: Vec<_> = yard.api.log().snapshot().into_iter().filter(|entry| entry.verb != "watch").collect();
    assert_eq!(asked, []);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_gateway_stops_and_a_deleted_route_is_forgotten() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 1).await;
    yard.route("podinfo", to(json!([{"name": "app", "port": 80}]))).await;
    let address = yard.names.resolve("gateway-istio.istio-ingress", 80).unwrap()[0];
    yard.dynamic("v1", "HTTPRoute", "test").delete("podinfo", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(yard.get("/").await.status, 404);
    yard.dynamic("v1", "Gateway", "istio-ingress").delete("gateway", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(yard.net.connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_route_with_an_unsupported_value_is_refused_and_harms_nobody() {
    let mut yard = Yard::with_gateway().await;
    yard.app("test", "app", 1, 1).await;
    yard.route("good", to(json!([{"name": "app", "port": 80}]))).await;
    yard.route(
        "bad",
        json!([{"matches": [{"path": {"type": "RegularExpression", "value": "("}}], "backendRefs": [{"name": "app", "port": 80}]}]),
    )
    .await;
    assert_eq!(condition(&yard.observed("bad").await, "Accepted")["reason"], "UnsupportedValue");
    assert_eq!(yard.get("/").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_mesh_counts_what_goes_straight_to_a_service() {
    let mut yard = Yard::start().await;
    yard.app("test", "podinfo-canary", 1, 2).await;
    let mesh = Mesh::new(yard.names.clone(), Telemetry::new("istio-system", "mesh")).in_namespace("test");
    let send = async |uri: &str| Answer::read(mesh.send(Request::get(uri).body(proxy::empty()).unwrap()).await).await;
    assert_eq!(send("http://podinfo-canary/status/500").await.status, 500);
    let answer = send("http://podinfo-canary.test.svc.cluster.local/").await;
    assert!(answer.header("x-drydock-upstream").starts_with("test/podinfo-canary-"));
    assert_eq!(send("http://10.244.1.0:9898/").await.status, 200);
    assert_eq!(send("http://nobody.test/").await.status, 502);
    assert_eq!(send("http://podinfo-canary:81/").await.status, 503);
    let counted = mesh.telemetry().requests();
    assert_eq!(counted[&("podinfo-canary".to_owned(), 500)], 1);
    assert_eq!(counted[&("podinfo-canary".to_owned(), 200)], 2);
    let page = mesh.telemetry().render();
    for reporter in ["source", "destination"] {
        let line = format!("istio_requests_total{{reporter=\"{reporter}\",source_workload=\"mesh\"");
        assert!(
            page.lines().any(|found| found.starts_with(&line) && found.contains("response_code=\"500\"")),
            "{page}"
        );
    }
}

/// Answers the first `answered` requests that come over one connection and hangs up on the next, once it was read.
async fn hang_up_after(yard: &mut Yard, ip: IpAddr, answered: usize) -> Arc<AtomicUsize> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut listener = yard.net.bind(SocketAddr::new(ip, 9898)).await.unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    yard.servers.spawn(async move {
        while let Ok(mut stream) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                for request in 0..=answered {
                    let mut text = Vec::new();
                    while !text.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        text.push(byte);
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    if request < answered {
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    }
                }
            });
        }
    });
    heard
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_sent_is_sent_again_only_where_that_is_counted() {
    let mut yard = Yard::with_gateway().await;
    let (once, never) = (IpAddr::from([10, 244, 1, 0]), IpAddr::from([10, 244, 2, 0]));
    for (name, subnet) in [("once", 1), ("never", 2)] {
        yard.app("test", name, subnet, 0).await;
    }
    yard.endpoints("test", "once", &[once]).await;
    yard.endpoints("test", "never", &[never, IpAddr::from([10, 244, 2, 1])]).await;
    let (heard_once, heard_never) = (hang_up_after(&mut yard, once, 1).await, hang_up_after(&mut yard, never, 0).await);
    until(|| yard.names.resolve("once.test", 80).is_ok() && yard.names.resolve("never.test", 80).is_ok()).await;
    let mesh = Mesh::new(yard.names.clone(), Telemetry::new("istio-system", "mesh")).in_namespace("test");
    let send = async |uri: &str| mesh.send(Request::get(uri).body(proxy::empty()).unwrap()).await.status();
    assert_eq!((send("http://once/").await, mesh.telemetry().resent()), (StatusCode::OK, 0));
    assert_eq!((send("http://once/").await, mesh.telemetry().resent()), (StatusCode::OK, 1), "on a new connection");
    assert_eq!(heard_once.load(Ordering::Relaxed), 3);
    let line = "drydock_requests_resent_total{source_workload=\"mesh\",source_workload_namespace=\"istio-system\"} 1";
    assert!(mesh.telemetry().render().lines().any(|found| found == line), "{}", mesh.telemetry().render());
    // Either of two endpoints may come first; the silent one is bound nowhere, so the request ends at the other.
    assert_eq!(send("http://never/").await, StatusCode::SERVICE_UNAVAILABLE, "the connection was fresh");
    assert_eq!((heard_never.load(Ordering::Relaxed), mesh.telemetry().resent()), (1, 1));
    yard.route("podinfo", to(json!([{"name": "once", "port": 80}]))).await;
    for resent in [0, 1] {
        assert_eq!((yard.get("/").await.status, yard.gateway.resent()), (StatusCode::OK, resent));
    }
}

#[tokio::test(start_paused = true)]
async fn only_pods_are_named_as_upstream() {
    let mut yard = Yard::start().await;
    let liar = axum::Router::new().fallback(async || ([("x-drydock-upstream", "test/somebody-else")], "hello"));
    yard.serve("10.244.9.9:9898".parse().unwrap(), liar).await;
    yard.app("test", "outside", 9, 0).await;
    yard.endpoints("test", "outside", &[IpAddr::from([10, 244, 9, 9])]).await;
    until(|| yard.names.resolve("outside.test", 80).is_ok()).await;
    let mesh = Mesh::new(yard.names.clone(), Telemetry::new("istio-system", "mesh"));
    let answer = mesh.send(Request::get("http://outside.test/").body(proxy::empty()).unwrap()).await;
    assert_eq!((answer.status(), answer.headers().get("x-drydock-upstream")), (StatusCode::OK, None));
}

#[tokio::test]
async fn real_commands_reach_names_through_the_proxy() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut yard = Yard::on(Wire::Loopback).await;
    yard.app("test", "podinfo-canary", 1, 1).await;
    let mesh = Mesh::new(yard.names.clone(), Telemetry::new("istio-system", "mesh"));
    let proxy = Proxy::start(mesh.clone()).await.unwrap();
    assert!(proxy.url("test").starts_with("http://test@127.0.0.1:"));
    let exchange = async |text: &str| {
        let mut stream = tokio::net::TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let short = "GET http://podinfo-canary/x HTTP/1.1\r\nHost: podinfo-canary\r\nProxy-Authorization: Basic dGVzdDo=\r\nConnection: close\r\n\r\n";
    let answer = exchange(short).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"target\":\"/x\""), "{answer}");
    assert!(!answer.contains("proxy-authorization"), "{answer}");
    let long = "GET http://podinfo-canary.test:80/ HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n";
    assert!(exchange(long).await.contains("\"host\":\"www.example.com\""));
    let unknown = "GET http://podinfo-canary/ HTTP/1.1\r\nHost: podinfo-canary\r\nConnection: close\r\n\r\n";
    assert!(exchange(unknown).await.starts_with("HTTP/1.1 502"), "without a namespace it is looked up in default");
    let tunnel = "CONNECT podinfo-canary.test:80 HTTP/1.1\r\nHost: x\r\n\r\nGET /t HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(exchange(tunnel).await.contains("\"target\":\"/t\""));
    assert_eq!(mesh.telemetry().requests()[&("podinfo-canary".to_owned(), 200)], 2);
}
