//! Image references: `registry/path:tag@digest`.

/// An image reference taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Registry and path, without tag and digest.
    pub repository: String,
    /// The tag; `latest` where none is written.
    pub tag: String,
}

impl Image {
    /// Takes a reference apart. Every string is some reference: what no rule fits is a repository.
    pub fn parse(reference: &str) -> Self {
        let named = reference.split_once('@').map_or(reference, |(named, _)| named);
        // A colon before the last slash belongs to the registry's port.
        let path_start = named.rfind('/').map_or(0, |slash| slash + 1);
        match named.get(path_start..).and_then(|last| last.split_once(':')) {
            Some((last, tag)) if !tag.is_empty() => {
                let repository = named.get(..path_start + last.len()).unwrap_or(named);
                Self { repository: repository.into(), tag: tag.into() }
            }
            _ => Self { repository: named.trim_end_matches(':').into(), tag: "latest".into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_repository_and_tag() {
        for (reference, repository, tag) in [
            ("podinfo", "podinfo", "latest"),
            ("podinfo:6.0.1", "podinfo", "6.0.1"),
            ("ghcr.io/stefanprodan/podinfo:6.0.2-err50", "ghcr.io/stefanprodan/podinfo", "6.0.2-err50"),
            ("localhost:5000/podinfo", "localhost:5000/podinfo", "latest"),
            ("localhost:5000/a/podinfo:6.0.0@sha256:00", "localhost:5000/a/podinfo", "6.0.0"),
            ("podinfo:6.0.2-errors=5%", "podinfo", "6.0.2-errors=5%"),
        ] {
            assert_eq!(Image::parse(reference), Image { repository: repository.into(), tag: tag.into() });
        }
    }
}
