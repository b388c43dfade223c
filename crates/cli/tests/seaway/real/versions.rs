//! The parts are what they are called, also those that no other test needs yet.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::parts::part;
use crate::harness::{nothing_may_be_skipped, skip};

/// Programs, and what makes each say its version. Contour built from its module knows none.
const PROGRAMS: [(&str, &str); 11] = [
    ("kube-apiserver", "--version"),
    ("kube-controller-manager", "--version"),
    ("kubectl", "version --client"),
    ("etcd", "--version"),
    ("helm", "version"),
    ("kustomize", "version"),
    ("skipper", "-version"),
    ("traefik", "version"),
    ("envoy", "--version"),
    ("prometheus", "--version"),
    ("promtool", "--version"),
];

/// Modules, and a kind that each must define.
const DEFINITIONS: [(&str, &str); 5] = [
    ("gateway-api", "httproutes.gateway.networking.k8s.io"),
    ("contour-files", "contourconfigurations.projectcontour.io"),
    ("prometheus-operator", "servicemonitors.monitoring.coreos.com"),
    ("istio-api", "virtualservices.networking.istio.io"),
    ("keda", "scaledobjects.keda.sh"),
];

/// The numbers of the version by which a part is called in the folder of parts. What is on the `PATH` is elsewhere, and the
/// folder of parts may be in another one called `tools`.
fn version(path: &Path) -> Option<&str> {
    let segments: Vec<_> = path.iter().collect();
    let tools = segments.iter().rposition(|segment| *segment == "tools")?;
    let called = segments.get(tools + 1)?.to_str()?;
    let words = called.split('-').map(|word| word.trim_start_matches('v'));
    let version = words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    version.split(|c: char| !c.is_ascii_digit() && c != '.').next()
}

#[test]
fn versions_are_in_the_names_of_parts() {
    for (path, expected) in [
        ("/cache/seaway/tools/kube-apiserver-v1.36.3", Some("1.36.3")),
        ("/cache/seaway/tools/prometheus-2.42.0+ds-5+deb12u1/usr/bin/promtool", Some("2.42.0")),
        ("/cache/seaway/tools/envoy-1.40.0/lib/python3.11/site-packages/envoy/_bin/envoy", Some("1.40.0")),
        ("/home/tools/me/.cache/seaway/tools/traefik-3.7.15/bin/traefik", Some("3.7.15")),
        ("/usr/bin/prometheus", None),
    ] {
        assert_eq!(version(Path::new(path)), expected, "{path}");
    }
}

/// Whether some manifest in a folder defines this kind.
fn defines(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        let is_manifest = path.extension().is_some_and(|ending| ending == "yaml");
        path.is_dir() && defines(&path, name)
            || is_manifest
                && std::fs::read_to_string(&path)
                    .is_ok_and(|text| text.contains("kind: CustomResourceDefinition") && text.contains(name))
    })
}

#[test]
fn every_part_is_what_it_is_called() {
    let test = "real::versions::every_part_is_what_it_is_called";
    for (name, argument) in PROGRAMS.into_iter().chain(DEFINITIONS) {
        let path = match part(name) {
            Ok(path) => path,
            Err(reason) => {
                assert!(!nothing_may_be_skipped(), "{test} cannot run: {reason}");
                return skip(test, &reason);
            }
        };
        if path.is_dir() {
            assert!(defines(&path, argument), "{} defines no {argument}", path.display());
            continue;
        }
        let output = Command::new(&path).args(argument.split(' ')).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        // Past the capture of the test runner: the log of a run says what was tested.
        let _ = writeln!(std::io::stderr(), "{name} says: {}", said.split_whitespace().collect::<Vec<_>>().join(" "));
        let version = version(&path);
        let is_it = version.is_none_or(|version| said.contains(version));
        assert!(output.status.success() && is_it, "{}: {said}", path.display());
    }
}
