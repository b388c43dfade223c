//! The text format in which a target shows its metrics.

use super::labels::{Labels, NAME};

/// Reads every sample of a page. A line that cannot be read fails the page, as it does in Prometheus.
pub(super) fn parse(page: &str) -> Result<Vec<(Labels, f64)>, String> {
    let mut samples = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        samples.push(sample(line).ok_or_else(|| format!("line {}: not a sample", number + 1))?);
    }
    Ok(samples)
}

fn sample(line: &str) -> Option<(Labels, f64)> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, mut rest) = line.split_at(end);
    if name.is_empty() {
        return None;
    }
    let mut pairs = vec![(NAME.to_owned(), name.to_owned())];
    rest = rest.trim_start();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = inside.trim_start().trim_start_matches(',').trim_start();
            if let Some(after) = inside.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = inside.split_once('=')?;
            let (value, after) = quoted(after.trim_start())?;
            pairs.push((label.trim().to_owned(), value));
            inside = after;
        }
    }
    // A time stamp or an exemplar may follow; both are ignored, the scrape's own time counts.
    let value = number(rest.split_whitespace().next()?)?;
    Some((pairs.into_iter().collect(), value))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = body.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some((value, body.get(index + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        other => other.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_prometheus_reads() {
        let page = "# HELP a help\n# TYPE a counter\na 1\n\nb{x=\"1\",y=\"q\\\"\\\\\\n,}\",} 2.5e3 1700000000000\n\
                    c_bucket{le=\"+Inf\"} +Inf # {trace=\"1\"} 3\nd {} NaN\n";
        let samples = parse(page).unwrap();
        assert_eq!(samples.len(), 4);
        assert_eq!(samples[0].0.get(NAME), "a");
        assert_eq!(samples[1].0.get("y"), "q\"\\\n,}");
        assert!((samples[1].1 - 2500.0).abs() < f64::EPSILON);
        assert!(samples[2].1.is_infinite());
        assert!(samples[3].1.is_nan());
    }

    #[test]
    fn a_broken_page_is_refused() {
        for page in ["a", "a{x=1} 2", "a{x=\"1\" 2", "a{x=\"1\"} two", "{x=\"1\"} 1"] {
            assert!(parse(page).is_err(), "{page}");
        }
    }
}
