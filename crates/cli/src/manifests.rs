//! Finding manifests: files as they are named, directories with everything beneath them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Directories deeper than this are not looked into; links can make a tree endless.
const DEEPEST: usize = 32;

/// All manifests among `paths`. Files are taken whatever they are called; in directories only YAML and JSON, in the
/// order of their names, hidden ones left out. `-` is kept as it is.
pub fn find(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(path.clone());
            continue;
        }
        let about = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if about.is_dir() {
            let before = found.len();
            walk(path, DEEPEST, &mut found)?;
            if found.len() == before {
                bail!("there are no .yaml, .yml or .json files in {}", path.display());
            }
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if path.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_searched_and_files_are_believed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let found = find(std::slice::from_ref(&root)).unwrap();
        assert!(found.iter().any(|path| path.ends_with("gateway-api/canary.yaml")));
        assert!(!found.iter().any(|path| path.ends_with("README.md")));
        assert!(found.is_sorted());
        let readme = root.join("gateway-api/README.md");
        assert_eq!(find(&[readme.clone(), "-".into()]).unwrap(), [readme, "-".into()]);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = find(&["/no/such/file.yaml".into()]).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /no/such/file.yaml");
    }
}
