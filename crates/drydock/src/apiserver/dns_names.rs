//! Names that DNS could know, and what keeps a text from being one.

pub(crate) const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
pub(crate) const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const SEARCH_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

const STRICT_LABEL_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
    '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Whether a text is a label that begins with a letter, as names of kinds and versions do; or why it is none.
pub(crate) fn dns_label(text: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes");
    }
    if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        wrong.push(STRICT_LABEL_TEXT);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(",")) }
}

/// Whether a text is a name with dots, as groups have; or why it is none.
pub(crate) fn is_subdomain(text: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push("must be no more than 253 bytes");
    }
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN_TEXT);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join(",")) }
}

/// Everything that keeps a name from being a label of DNS.
pub(crate) fn no_label(name: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push("must be no more than 63 characters");
    }
    if !is_label(name) {
        wrong.push(if name.split('.').all(is_label) { "must not contain dots" } else { LABEL_TEXT });
    }
    wrong
}

/// Everything that keeps a name from being a subdomain of DNS.
pub(crate) fn no_subdomain(name: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push("must be no more than 253 characters");
    }
    if !name.split('.').all(is_label) {
        wrong.push(SUBDOMAIN_TEXT);
    }
    wrong
}

/// The same where a part may begin with an underscore and have some inside, as names of services do.
pub(crate) fn no_search_domain(name: &str) -> Vec<&'static str> {
    let is_part = |part: &str| is_label(&part.strip_prefix('_').unwrap_or(part).replace('_', "-"));
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push("must be no more than 253 characters");
    }
    if !name.split('.').all(is_part) {
        wrong.push(SEARCH_TEXT);
    }
    wrong
}

/// Whether a text is a part of a name between dots.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
}
