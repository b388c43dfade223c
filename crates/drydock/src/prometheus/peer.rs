//! PromQL next to Prometheus itself: `promtool` evaluates the same queries over the same samples.
//!
//! Debian's Prometheus is of the second major version, where a window includes its first instant; ours is the third's, where
//! it does not; and a counter that began within its window grows a little more with the second. So queries are asked between
//! two samples, when all series are older than any window: there both mean the same.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::golden::{ask, load};

/// What is asked, about counters, gauges and a histogram.
const QUERIES: &[&str] = &[
    "req",
    "req{code!~\"5..\"}",
    "req{pod=~\"a|b\",code=\"500\"} offset 30s",
    "rate(req[1m])",
    "rate(req[34s])",
    "increase(req[2m])",
    "irate(req[1m])",
    "delta(level[1m])",
    "sum(rate(req[1m]))",
    "sum(rate(req[1m])) by (code)",
    "sum without (pod) (rate(req[1m]))",
    "sum(rate(req{code!~\"5.*\"}[1m])) / sum(rate(req[1m])) * 100",
    "100 - sum(rate(req{code!~\"5.*\"}[1m])) / sum(rate(req[1m])) * 100",
    "sum by (pod) (rate(req{code=\"500\"}[1m])) / sum by (pod) (rate(req[1m]))",
    "rate(req{code=\"500\"}[1m]) / ignoring (code) rate(req{code=\"200\"}[1m])",
    "req{code=\"500\"} * on (pod) group_left () level",
    "avg_over_time(level[44s])",
    "max_over_time(level[1m])",
    "min_over_time(level[1m])",
    "sum_over_time(level[1m])",
    "count_over_time(level[1m])",
    "last_over_time(level[1m])",
    "min(level)",
    "max by (pod) (level)",
    "avg(level)",
    "count(req)",
    "level > 50",
    "level >= bool 50",
    "level unless on (pod) (level > 50)",
    "none or vector(7)",
    "absent(none{pod=\"a\"})",
    "clamp(level, 20, 60)",
    "abs(level - 50)",
    "ceil(level / 7) + floor(level / 7)",
    "vector(scalar(sum(level)))",
    "histogram_quantile(0.99, sum(rate(lat_bucket[1m])) by (le))",
    "histogram_quantile(0.5, sum(rate(lat_bucket[1m])) by (le, pod))",
];

/// Series of three pods, drawn from a seed: counters that are reset now and then, gauges, and buckets.
fn series(seed: u64) -> Vec<String> {
    let mut state = seed;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut lines = Vec::new();
    for pod in ["a", "b", "c"] {
        for code in ["200", "404", "500"] {
            let (mut count, mut line) = (0, format!("req{{pod=\"{pod}\",code=\"{code}\"}} |"));
            for _ in 0..20 {
                count = if draw(12) == 0 { draw(5) } else { count + draw(100) };
                let _ = write!(line, " {count}");
            }
            lines.push(line);
        }
        let mut line = format!("level{{pod=\"{pod}\"}} |");
        for _ in 0..20 {
            let _ = write!(line, " {}", draw(100));
        }
        lines.push(line);
        let mut totals = [0; 4];
        let mut buckets = ["0.1", "0.5", "1", "+Inf"].map(|le| format!("lat_bucket{{pod=\"{pod}\",le=\"{le}\"}} |"));
        for _ in 0..20 {
            let mut sum = 0;
            for (total, line) in totals.iter_mut().zip(&mut buckets) {
                sum += draw(20);
                *total += sum;
                let _ = write!(line, " {total}");
            }
        }
        lines.extend(buckets);
    }
    lines
}

/// One query in promtool's language, with what drydock says to it.
fn case(query: &str, seconds: i64, answer: &str) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let mut text = format!("    - expr: {}\n      eval_time: {seconds}s\n      exp_samples:\n", quoted(query));
    for sample in answer.split("; ").filter(|sample| !sample.is_empty()) {
        let (labels, value) = sample.rsplit_once(' ').unwrap_or(("{}", sample));
        let (name, pairs) = labels.trim_end_matches('}').split_once('{').unwrap();
        let pairs: Vec<String> = pairs
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        let _ = writeln!(
            text,
            "        - {{labels: {}, value: {value}}}",
            quoted(&format!("{name}{{{}}}", pairs.join(",")))
        );
    }
    text
}

fn promtool() -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/install");
    let output =
        Command::new(script).arg("promtool").stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let last = |text: &[u8]| String::from_utf8_lossy(text).trim().lines().last().unwrap_or_default().to_owned();
    if output.status.success() { Ok(last(&output.stdout)) } else { Err(last(&output.stderr)) }
}

#[test]
fn prometheus_itself_says_the_same() {
    let promtool = match promtool() {
        Ok(promtool) => promtool,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "skipped: prometheus::peer::prometheus_itself_says_the_same: {why}");
            return;
        }
    };
    let mut text = String::from("evaluation_interval: 10s\ntests:\n");
    for seed in 0..20 {
        let series = series(seed);
        let lines: Vec<&str> = series.iter().map(String::as_str).collect();
        let storage = load(&lines);
        let _ = writeln!(text, "- interval: 10s\n  input_series:");
        for line in &series {
            let (name, values) = line.split_once(" |").unwrap();
            let _ = writeln!(text, "    - {{series: '{name}', values: '{}'}}", values.trim());
        }
        let _ = writeln!(text, "  promql_expr_test:");
        for query in QUERIES {
            for seconds in [127, 163, 183] {
                let asked =
                    |query: &str| ask(&storage, seconds, query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
                // The last digits are each program's own.
                let query = format!("round({query}, 0.0001)");
                // promtool finds no NaN equal to another, but it can be asked where they are and what the others are.
                let queries = match asked(&query) {
                    answer if answer.contains("NaN") => {
                        vec![format!("({query}) != bool ({query})"), format!("({query}) == ({query})")]
                    }
                    _ => vec![query],
                };
                for query in queries {
                    text += &case(&query, seconds, &asked(&query));
                }
            }
        }
    }
    let file = std::env::temp_dir().join(format!("seaway-promql-{}.yaml", std::process::id()));
    std::fs::write(&file, &text).unwrap();
    let output = Command::new(promtool).args(["test", "rules"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let _ = std::fs::remove_file(&file);
    assert!(output.status.success(), "{}", said.lines().take(60).collect::<Vec<_>>().join("\n"));
    assert!(said.contains("SUCCESS"), "{said}");
}
