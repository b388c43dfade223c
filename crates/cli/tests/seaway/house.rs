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

/// A map that names a place which is not there is worse than none.
#[test]
fn documents_name_only_what_exists() {
    for document in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/flagger.md", "docs/operations.md", "docs/drydock.md"]
    {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let ticked = text.split('`').skip(1).step_by(2).map(str::to_owned);
        let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next().map(str::to_owned));
        for place in ticked.chain(linked) {
            let is_place = ["crates/", "docs/", "examples/", "tools/"].iter().any(|folder| place.starts_with(folder));
            if is_place && !place.contains(['*', '{', ' ']) {
                assert!(root().join(&place).exists(), "{document} names {place}, which does not exist");
            }
        }
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
