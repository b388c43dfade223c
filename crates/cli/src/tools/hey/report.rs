//! What a load run found, in the shape hey prints it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::tools::web::Reply;

const BARS: usize = 10;
const LONGEST_BAR: u64 = 40;
/// Distinct error texts that are told apart; a run against a broken server must not grow without bound.
const MOST_ERRORS: usize = 50;

/// One reply.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    latency: Duration,
    offset: Duration,
    dial: Duration,
    wait: Duration,
    read: Duration,
    status: u16,
    size: u64,
}

impl Sample {
    pub(super) fn new(latency: Duration, offset: Duration, reply: &Reply) -> Self {
        Self {
            latency,
            offset,
            dial: reply.dial,
            wait: reply.wait,
            read: reply.read,
            status: reply.status.as_u16(),
            size: reply.body.len() as u64,
        }
    }
}

/// Takes one of its times out of a sample.
type Part = fn(&Sample) -> Duration;

/// All replies and errors of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) took: Duration,
    replies: u64,
    bytes: u64,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<String, u64>,
    samples: Vec<Sample>,
    keep: usize,
}

impl Report {
    /// An empty report that keeps the times of the first `keep` replies; all are counted.
    pub(super) fn keeping(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    pub(super) fn reply(&mut self, sample: Sample) {
        self.replies += 1;
        self.bytes += sample.size;
        *self.statuses.entry(sample.status).or_default() += 1;
        if self.samples.len() < self.keep {
            self.samples.push(sample);
        }
    }

    pub(super) fn error(&mut self, text: String) {
        self.errors_of(text, 1);
    }

    fn errors_of(&mut self, text: String, count: u64) {
        let known = self.errors.len() < MOST_ERRORS || self.errors.contains_key(&text);
        *self.errors.entry(if known { text } else { "other errors".to_owned() }).or_default() += count;
    }

    /// Adds what another worker saw.
    pub(super) fn merge(&mut self, other: Self) {
        self.replies += other.replies;
        self.bytes += other.bytes;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (text, count) in other.errors {
            self.errors_of(text, count);
        }
        self.samples.extend(other.samples);
    }

    /// The text hey prints at the end.
    pub(super) fn summary(&self) -> String {
        let mut latencies: Vec<f64> = self.samples.iter().map(|sample| sample.latency.as_secs_f64()).collect();
        latencies.sort_by(f64::total_cmp);
        let mut out = String::new();
        self.totals(&mut out, &latencies);
        if let (Some(fastest), Some(slowest)) = (latencies.first(), latencies.last()) {
            histogram(&mut out, &latencies, *fastest, *slowest);
            distribution(&mut out, &latencies);
            self.details(&mut out);
        }
        if !self.statuses.is_empty() {
            out.push_str("\nStatus code distribution:\n");
            for (status, count) in &self.statuses {
                let _ = writeln!(out, "  [{status}]\t{count} responses");
            }
        }
        if !self.errors.is_empty() {
            out.push_str("\nError distribution:\n");
            for (text, count) in &self.errors {
                let _ = writeln!(out, "  [{count}]\t{text}");
            }
        }
        out.push('\n');
        out
    }

    fn totals(&self, out: &mut String, latencies: &[f64]) {
        let took = self.took.as_secs_f64();
        let _ = writeln!(out, "\nSummary:\n  Total:\t{took:.4} secs");
        if let (Some(fastest), Some(slowest)) = (latencies.first(), latencies.last()) {
            let average = latencies.iter().sum::<f64>() / latencies.len() as f64;
            let _ = writeln!(out, "  Slowest:\t{slowest:.4} secs");
            let _ = writeln!(out, "  Fastest:\t{fastest:.4} secs");
            let _ = writeln!(out, "  Average:\t{average:.4} secs");
        }
        let rate = if took > 0.0 { self.replies as f64 / took } else { 0.0 };
        let _ = writeln!(out, "  Requests/sec:\t{rate:.4}");
        if self.bytes > 0 {
            let each = self.bytes / self.replies.max(1);
            let _ = writeln!(out, "\n  Total data:\t{} bytes\n  Size/request:\t{each} bytes", self.bytes);
        }
    }

    fn details(&self, out: &mut String) {
        out.push_str("\nDetails (average, fastest, slowest):\n");
        let parts: [(&str, Part); 3] = [
            ("DNS+dialup", |sample| sample.dial),
            ("resp wait", |sample| sample.wait),
            ("resp read", |sample| sample.read),
        ];
        for (name, part) in parts {
            let times = || self.samples.iter().map(|sample| part(sample).as_secs_f64());
            let average = times().sum::<f64>() / self.samples.len().max(1) as f64;
            let fastest = times().fold(f64::INFINITY, f64::min);
            let slowest = times().fold(0.0, f64::max);
            let _ = writeln!(out, "  {name}:\t{average:.4} secs, {fastest:.4} secs, {slowest:.4} secs");
        }
    }

    /// One line for each kept reply, with hey's columns. Looking up the name and writing the request are not measured
    /// apart from dialling and waiting, so their columns are always 0.
    pub(super) fn csv(&self) -> String {
        let mut out =
            "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n".to_owned();
        for sample in &self.samples {
            let _ = writeln!(
                out,
                "{:.4},{:.4},0.0000,0.0000,{:.4},{:.4},{},{:.4}",
                sample.latency.as_secs_f64(),
                sample.dial.as_secs_f64(),
                sample.wait.as_secs_f64(),
                sample.read.as_secs_f64(),
                sample.status,
                sample.offset.as_secs_f64(),
            );
        }
        out
    }
}

fn histogram(out: &mut String, latencies: &[f64], fastest: f64, slowest: f64) {
    out.push_str("\nResponse time histogram:\n");
    let width = (slowest - fastest) / BARS as f64;
    let bounds: Vec<f64> = (0..=BARS).map(|bar| fastest + width * bar as f64).collect();
    let mut counts = vec![0_u64; bounds.len()];
    for latency in latencies {
        let bar = bounds.iter().position(|bound| latency <= bound).unwrap_or(BARS);
        if let Some(count) = counts.get_mut(bar) {
            *count += 1;
        }
    }
    let tallest = counts.iter().copied().max().unwrap_or(1).max(1);
    for (bound, count) in bounds.iter().zip(&counts) {
        let bar = "■".repeat((count * LONGEST_BAR / tallest) as usize);
        let _ = writeln!(out, "  {bound:.3} [{count}]\t|{bar}");
    }
}

fn distribution(out: &mut String, latencies: &[f64]) {
    out.push_str("\nLatency distribution:\n");
    for percent in [10, 25, 50, 75, 90, 95, 99] {
        // The smallest value that at least `percent` of all values do not exceed.
        let rank = (latencies.len() * percent).div_ceil(100).max(1) - 1;
        if let Some(latency) = latencies.get(rank) {
            let _ = writeln!(out, "  {percent}% in {latency:.4} secs");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(milliseconds: u64, status: u16) -> Sample {
        let latency = Duration::from_millis(milliseconds);
        Sample {
            latency,
            offset: latency * 2,
            dial: Duration::ZERO,
            wait: latency,
            read: Duration::ZERO,
            status,
            size: 10,
        }
    }

    #[test]
    fn a_summary_reads_like_heys() {
        let mut report = Report::keeping(100);
        for milliseconds in 1..=20 {
            report.reply(sample(milliseconds, if milliseconds == 20 { 500 } else { 200 }));
        }
        report.error("cannot connect: refused".to_owned());
        report.took = Duration::from_secs(2);
        insta::assert_snapshot!(report.summary());
    }

    #[test]
    fn no_reply_at_all_is_a_short_summary() {
        let report = Report { took: Duration::from_secs(1), ..Report::default() };
        insta::assert_snapshot!(report.summary());
    }

    #[test]
    fn csv_has_one_line_for_each_reply() {
        let mut report = Report::keeping(1);
        report.reply(sample(5, 200));
        report.reply(sample(6, 200));
        assert_eq!(report.csv().lines().count(), 2, "only as many as are kept");
        assert!(report.csv().ends_with("0.0050,0.0000,0.0000,0.0000,0.0050,0.0000,200,0.0100\n"));
    }
}
