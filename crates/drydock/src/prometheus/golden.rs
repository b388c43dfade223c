//! PromQL against values worked out by hand, in the notation of Prometheus' own tests: a series is a name with labels
//! and its values 10 s apart, starting at time 0.

use super::eval::Query;
use super::labels::{Labels, NAME};
use super::storage::{Sample, Storage, stale};
use super::value::{QueryError, Value, number};

const STEP: i64 = 10_000;

/// Loads lines such as `m{a="1"} 0 10 20 _ stale`.
pub(super) fn load(lines: &[&str]) -> Storage {
    let mut storage = Storage::new(86_400_000);
    for line in lines {
        let (series, values) = line.rsplit_once('|').unwrap();
        let (parsed, _) = super::exposition::parse(&format!("{} 0", series.trim())).unwrap().remove(0);
        for (index, value) in values.split_whitespace().enumerate() {
            let value = match value {
                "_" => continue,
                "stale" => stale(),
                number => number.parse().unwrap(),
            };
            storage.append(&parsed, Sample { time: index as i64 * STEP, value });
        }
    }
    storage
}

fn show(labels: &Labels) -> String {
    let pairs: Vec<String> =
        labels.iter().filter(|(name, _)| *name != NAME).map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}{{{}}}", labels.get(NAME), pairs.join(","))
}

pub(super) fn ask(storage: &Storage, seconds: i64, query: &str) -> Result<String, QueryError> {
    let time = seconds * 1_000;
    Ok(match Query::parse(query)?.evaluate(storage, time, time, time)? {
        Value::Scalar(value) => number(value),
        Value::Vector(mut vector) => {
            if !query.contains("sort") {
                vector.sort_by(|one, two| one.0.cmp(&two.0));
            }
            let shown = vector.iter().map(|(labels, value)| format!("{} {}", show(labels), number(*value)));
            shown.collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    })
}

fn check(storage: &Storage, seconds: i64, table: &[(&str, &str)]) {
    for (query, expected) in table {
        assert_eq!(ask(storage, seconds, query).as_deref(), Ok(*expected), "{query}");
    }
}

fn requests() -> Storage {
    load(&[
        "req{job=\"api\",code=\"200\",pod=\"a\"} | 0 100 200 300 400 500 600",
        "req{job=\"api\",code=\"200\",pod=\"b\"} | 0 50 100 150 200 250 300",
        "req{job=\"api\",code=\"500\",pod=\"a\"} | 0 10 20 30 40 50 60",
        "limit{job=\"api\"} | 7 7 7 7 7 7 7",
        "ended{job=\"api\"} | 1 1 1 stale",
        "gap{job=\"api\"} | 1 _ _ _ _ _ _",
    ])
}

#[test]
fn selectors() {
    check(
        &requests(),
        60,
        &[
            ("req{code=\"500\"}", "req{code=500,job=api,pod=a} 60"),
            ("req{code=~\"5.*\"}", "req{code=500,job=api,pod=a} 60"),
            ("req{code!~\"5.*\",pod!=\"b\"}", "req{code=200,job=api,pod=a} 600"),
            ("req{code=~\"5\"}", ""),
            ("req{code=\"500\",}", "req{code=500,job=api,pod=a} 60"),
            ("req{missing=\"\",code=\"500\"}", "req{code=500,job=api,pod=a} 60"),
            ("{__name__=\"limit\"}", "limit{job=api} 7"),
            ("req{code=\"500\"} offset 30s", "req{code=500,job=api,pod=a} 30"),
            ("req{code=\"500\"} @ 20", "req{code=500,job=api,pod=a} 20"),
            ("ended", ""),
            ("ended offset 40s", "ended{job=api} 1"),
            ("gap", "gap{job=api} 1"),
        ],
    );
    check(&requests(), 299, &[("gap", "gap{job=api} 1")]);
    check(&requests(), 300, &[("gap", "")]);
}

#[test]
fn rates() {
    // The window (0, 60] holds six samples; the first is 10 s after its start, below 1.1 steps: extrapolated to it.
    check(
        &requests(),
        60,
        &[
            ("rate(req{code=\"500\"}[1m])", "{code=500,job=api,pod=a} 1"),
            ("increase(req{code=\"500\"}[1m])", "{code=500,job=api,pod=a} 60"),
            ("irate(req{code=\"500\"}[1m])", "{code=500,job=api,pod=a} 1"),
            ("delta(limit[1m])", "{job=api} 0"),
            ("sum(rate(req[1m]))", "{} 16"),
            ("sum(rate(req[1m])) by (code)", "{code=200} 15; {code=500} 1"),
            ("sum without (pod, code) (rate(req[1m]))", "{job=api} 16"),
            ("sum(rate(req{code!~\"5.*\"}[1m])) / sum(rate(req[1m])) * 100", "{} 93.75"),
            ("100 - sum(rate(req{code!~\"5.*\"}[1m])) / sum(rate(req[1m])) * 100", "{} 6.25"),
            ("rate(gap[1m])", ""),
            ("count_over_time(ended[5m])", "{job=api} 3"),
            ("max_over_time(req{code=\"500\"}[30s])", "{code=500,job=api,pod=a} 60"),
            ("avg_over_time(req{code=\"500\"}[30s])", "{code=500,job=api,pod=a} 50"),
            ("last_over_time(ended[5m])", "ended{job=api} 1"),
        ],
    );
}

#[test]
fn nothing_divided_by_nothing_is_nothing() {
    check(&requests(), 60, &[("sum(rate(none[1m])) / sum(rate(none[1m])) * 100", ""), ("sum(none)", "")]);
    let idle = load(&["idle | 5 5 5 5 5 5 5"]);
    check(&idle, 60, &[("sum(rate(idle[1m])) / sum(rate(idle[1m]))", "{} NaN")]);
}

#[test]
fn aggregations_and_functions() {
    check(
        &requests(),
        60,
        &[
            ("min(req)", "{} 60"),
            ("max by (code) (req)", "{code=200} 600; {code=500} 60"),
            ("avg(req)", "{} 320"),
            ("count(req)", "{} 3"),
            ("group(req)", "{} 1"),
            ("abs(-req{code=\"500\"})", "{code=500,job=api,pod=a} 60"),
            ("-limit", "{job=api} -7"),
            ("clamp_max(req{code=\"500\"}, 5)", "{code=500,job=api,pod=a} 5"),
            ("clamp_min(limit, 8)", "{job=api} 8"),
            ("clamp(limit, 1, 3)", "{job=api} 3"),
            ("round(limit / 2)", "{job=api} 4"),
            ("floor(limit / 2)", "{job=api} 3"),
            ("vector(1)", "{} 1"),
            ("scalar(limit)", "7"),
            ("scalar(req)", "NaN"),
            ("time()", "60"),
            ("absent(none{a=\"b\",c=~\"d\"})", "{a=b} 1"),
            ("absent(limit)", ""),
            ("sort_desc(sum by (code) (req))", "{code=200} 900; {code=500} 60"),
        ],
    );
}

#[test]
fn operators() {
    check(
        &requests(),
        60,
        &[
            ("1 + 2 * 3 ^ 2", "19"),
            ("-1 ^ 2", "-1"),
            ("7 % 4", "3"),
            ("1 > bool 2", "0"),
            ("1 / 0", "+Inf"),
            ("req > 100", "req{code=200,job=api,pod=a} 600; req{code=200,job=api,pod=b} 300"),
            ("100 > req", "req{code=500,job=api,pod=a} 60"),
            ("limit == bool 7", "{job=api} 1"),
            ("req{code=\"500\"} / ignoring (code) req{code=\"200\"}", "{job=api,pod=a} 0.1"),
            ("req{code=\"500\"} / on (pod) req{code=\"200\"}", "{pod=a} 0.1"),
            ("req{code=\"500\"} * on (job) group_left () limit", "{code=500,job=api,pod=a} 420"),
            ("limit * on (job) group_right () req{code=\"500\"}", "{code=500,job=api,pod=a} 420"),
            ("req and on (pod) req{code=\"500\"}", "req{code=200,job=api,pod=a} 600; req{code=500,job=api,pod=a} 60"),
            ("req unless on (pod) req{code=\"500\"}", "req{code=200,job=api,pod=b} 300"),
            ("none or vector(0)", "{} 0"),
            ("limit or vector(0)", "{} 0; limit{job=api} 7"),
        ],
    );
}

#[test]
fn a_latency_template_gives_the_quantile_in_seconds() {
    let storage = load(&[
        "lat_bucket{le=\"100\",pod=\"a\"} | 0 50 100 150 200 250 300",
        "lat_bucket{le=\"500\",pod=\"a\"} | 0 90 180 270 360 450 540",
        "lat_bucket{le=\"1000\",pod=\"a\"} | 0 100 200 300 400 500 600",
        "lat_bucket{le=\"+Inf\",pod=\"a\"} | 0 100 200 300 400 500 600",
    ]);
    // Rates 5, 9, 10, 10: rank 9.9 lies nine tenths up the bucket from 500 to 1000.
    let quantile = "histogram_quantile(0.99, sum(rate(lat_bucket[1m])) by (le)) / 1000";
    check(&storage, 60, &[(&format!("round({quantile}, 0.000001)"), "{} 0.95")]);
}

#[test]
fn what_is_wrong_is_said_in_the_right_class() {
    let storage = requests();
    for query in ["", "sum(", "req{", "1 > 2", "rate(req)", "req{a=~\"(\"}", "nosuch(1)"] {
        assert!(matches!(ask(&storage, 60, query), Err(QueryError::BadData(_))), "{query}");
    }
    for query in [
        "topk(1, req)",
        "max_over_time(rate(req[1m])[5m:10s])",
        "label_replace(req, \"a\", \"b\", \"c\", \"d\")",
        "req / on (job) req",
        "rate({job=\"api\"}[1m])",
    ] {
        assert!(matches!(ask(&storage, 60, query), Err(QueryError::Execution(_))), "{query}");
    }
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    assert!(matches!(ask(&storage, 60, &deep), Err(QueryError::BadData(_))));
}

/// The shapes of the queries that rollouts send: trailing commas, spaces everywhere, `by` behind the argument.
#[test]
fn builtin_queries_are_understood() {
    let storage = load(&[
        "http_request_duration_seconds_count{kubernetes_namespace=\"test\",kubernetes_pod_name=\"podinfo-abc-x1\",status=\"200\"} | 0 9 18 27 36 45 54",
        "http_request_duration_seconds_count{kubernetes_namespace=\"test\",kubernetes_pod_name=\"podinfo-abc-x1\",status=\"500\"} | 0 1 2 3 4 5 6",
        "http_request_duration_seconds_count{kubernetes_namespace=\"test\",kubernetes_pod_name=\"podinfo-primary-abc-x1\",status=\"500\"} | 0 1 2 3 4 5 6",
        "lb_bucket{route=\"kube_test__app_canary__all__app_canary\",code=\"200\",le=\"+Inf\"} | 0 30 60 90 120 150 180",
        "lb_bucket{route=\"kube_test__app_canary__all__app_canary\",code=\"503\",le=\"+Inf\"} | 0 10 20 30 40 50 60",
    ]);
    let pods = "kubernetes_namespace=\"test\", kubernetes_pod_name=~\"podinfo-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)\"";
    let count = "http_request_duration_seconds_count";
    let http = format!(
        " sum( rate( {count}{{ {pods}, status!~\"5.*\" }}[1m] ) ) / sum( rate( {count}{{ {pods}, }}[1m] ) ) * 100"
    );
    let route = "route=~\"kube(ew)?_test__app_canary__.*__app_canary(_[0-9]+)?\"";
    let lb = format!(
        " sum(rate(lb_bucket{{{route},code!~\"5..\",le=\"+Inf\"}}[1m])) / sum(rate(lb_bucket{{{route},le=\"+Inf\"}}[1m])) * 100"
    );
    check(&storage, 60, &[(&http, "{} 90"), (&lb, "{} 75")]);
}

/// Random rows of tokens: most are nonsense, none may panic, and what evaluates must do so twice the same.
#[test]
fn nonsense_is_an_error_and_never_a_panic() {
    const TOKENS: [&str; 40] = [
        "req",
        "limit",
        "none",
        "sum",
        "rate",
        "by",
        "without",
        "(",
        ")",
        "(",
        ")",
        "{",
        "}",
        "[1m]",
        "[",
        "]",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "==",
        ">",
        "bool",
        "and",
        "or",
        "unless",
        "on",
        "(job)",
        "group_left",
        "offset",
        "5m",
        "@",
        "1",
        "0.5",
        "\"x\"",
        "code=~\"5.*\"",
        "histogram_quantile",
    ];
    let storage = requests();
    let mut state = 42_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    let mut understood = 0;
    for _ in 0..20_000 {
        let length = 1 + next() % 8;
        let query: Vec<&str> = (0..length).map(|_| TOKENS[next() % TOKENS.len()]).collect();
        let query = query.join(" ");
        let answer = ask(&storage, 60, &query);
        understood += usize::from(answer.is_ok());
        assert_eq!(answer, ask(&storage, 60, &query), "{query}");
    }
    assert!(understood > 100, "{understood}");
}
