//! The walls of the house: arrows between crates point down only, and files stay small enough to read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Everything beneath a crate as it is built for users. `cargo tree -p` resolves features for that crate alone;
/// `cargo metadata` would show the union over the workspace.
fn beneath(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}", "-p", package])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn assert_free_of(package: &str, banned: &[&str]) {
    let tree = beneath(package);
    let found: Vec<_> = banned.iter().filter(|name| tree.contains(**name)).collect();
    assert!(found.is_empty(), "{package} must not stand on {found:?}");
}

#[test]
fn the_nouns_and_the_rules_do_no_io() {
    for package in ["seaway-api", "seaway-core"] {
        assert_free_of(package, &["tokio", "hyper", "kube", "kube-client", "kube-runtime", "rustls", "reqwest"]);
    }
}

#[test]
fn arrows_never_point_up() {
    assert_free_of(
        "seaway-api",
        &["seaway-core", "seaway-adapters", "seaway-operator", "seaway-drydock", "seaway-cli"],
    );
    assert_free_of("seaway-core", &["seaway-adapters", "seaway-operator", "seaway-drydock", "seaway-cli"]);
    assert_free_of("seaway-adapters", &["seaway-operator", "seaway-drydock", "seaway-cli", "kube", "kube-client"]);
    assert_free_of("seaway-operator", &["seaway-drydock", "seaway-cli"]);
    assert_free_of("seaway-drydock", &["seaway-core", "seaway-adapters", "seaway-operator", "seaway-cli"]);
}

#[test]
fn one_tls_provider() {
    assert_free_of("seaway-cli", &["aws-lc-rs", "openssl", "native-tls"]);
}

#[test]
fn files_stay_readable() {
    let output = Command::new("git").args(["ls-files", "*.rs", "*.go", "*.sh", "tools/*"]).current_dir(root()).output();
    let files: Vec<PathBuf> = match output {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8(output.stdout).unwrap().lines().map(|line| root().join(line)).collect()
        }
        _ => rust_files(&root().join("crates")),
    };
    assert!(files.len() > 20, "found only {} source files", files.len());
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs" || ext == "go")) {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let lines = text.lines().count();
        assert!(lines <= 1000, "{} has {lines} lines: split it", file.display());
        let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let says_nothing = ["utils", "util", "helpers", "helper", "common", "misc"].contains(&name);
        assert!(!says_nothing, "{} does not say what is inside", file.display());
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found
}

/// What people read: the documents at the root and those in `docs`.
fn documents() -> Vec<PathBuf> {
    let named = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name));
    let more = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    named.into_iter().chain(more.filter(|path| path.extension().is_some_and(|ending| ending == "md"))).collect()
}

/// Its text without blocks of code.
fn prose(document: &Path) -> String {
    let text = std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    text.split("```").step_by(2).collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(document: &Path) -> BTreeSet<String> {
    let prose = prose(document);
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let anchor = |heading: &str| heading.to_lowercase().replace(' ', "-").chars().filter(|c| kept(*c)).collect();
    headings.map(anchor).collect()
}

/// A map that names a place which is not there is worse than none.
#[test]
fn documents_name_only_what_exists() {
    let (mut places, mut links) = (0, 0);
    for document in documents() {
        let (prose, name) = (prose(&document), document.display());
        for place in prose.split('`').skip(1).step_by(2) {
            let is_place = ["crates/", "docs/", "examples/", "tools/"].iter().any(|folder| place.starts_with(folder));
            if is_place && !place.contains(['*', '{', ' ']) {
                places += 1;
                assert!(root().join(place).exists(), "{name} names {place}, which does not exist");
            }
        }
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.with_file_name("").join(file) };
            assert!(target.exists(), "{name} leads to {link}, which does not exist");
            assert!(
                anchor.is_empty() || anchors(&target).contains(anchor),
                "{name} leads to {link}, a heading that is not there"
            );
        }
    }
    assert!(places > 20 && links > 20, "only {places} places and {links} links were found");
}

/// Go tells who has an older one only after it was asked to build.
#[test]
fn the_version_of_go_that_is_asked_for_is_the_one_that_is_needed() {
    let mut needed = (Vec::new(), String::new());
    for folder in std::fs::read_dir(root().join("tools")).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(module) = std::fs::read_to_string(folder.join("go.mod")) else { continue };
        let version = module.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
        let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
        needed = needed.max((numbers, version.to_owned()));
    }
    for (place, words) in [("tools/install", "install Go "), ("docs/real-clusters.md", "Go ")] {
        let text = std::fs::read_to_string(root().join(place)).unwrap();
        let asked = format!("{words}{}", needed.1);
        assert!(text.contains(&asked), "{place} does not say {asked:?}");
    }
}

/// A manifest may declare a bug of the zoo and nothing else: neither `default` nor another crate can turn it on. Each has
/// a row that names the test which must catch it.
#[test]
fn bugs_of_the_zoo_are_off_and_have_a_row_each() {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let mut declared = BTreeSet::new();
    for folder in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let manifest = read(folder.path().join("Cargo.toml"));
        let package = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
        for line in manifest.lines().filter(|line| line.contains("zoo-z")) {
            let feature = line.strip_suffix(" = []").unwrap_or_else(|| panic!("{package} turns a bug on: {line}"));
            declared.insert(format!("{package}/{feature}"));
        }
    }
    assert!(!read(root().join("Cargo.toml")).contains("zoo-"));
    let table = read(root().join("tools/zoo.tsv"));
    let rows: Vec<Vec<&str>> =
        table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 5 && row.iter().all(|cell| !cell.is_empty())), "{rows:#?}");
    let listed: BTreeSet<String> = rows.iter().map(|row| row[1].to_owned()).collect();
    assert_eq!((rows.len(), &listed), (declared.len(), &declared));
    let numbers: Vec<String> = (1..=rows.len()).map(|number| format!("Z{number}")).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), numbers);
}
