//! The generated schema tables, and the tables kubectl prints.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PostParams;

use super::{deployment, get, server};

#[tokio::test(start_paused = true)]
async fn kubectl_gets_rows_and_columns() {
    let client = server().client("test");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(125)).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = get(&client, "/apis/apps/v1/namespaces/default/deployments", accept).await;
    assert_eq!(table["kind"], "Table");
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!((columns.first(), columns.last()), (Some(&"Name"), Some(&"Age")));
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!((cells.first().unwrap(), cells.last().unwrap()), (&"podinfo".into(), &"2m5s".into()));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let table = get(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", accept).await;
    assert_eq!(table["rows"].as_array().unwrap().len(), 4);
}

/// Says so past the test harness, which keeps what a passing test prints to itself.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "skipped: the_schema_tables_are_what_the_generator_makes: {why}").unwrap();
}

#[test]
fn the_schema_tables_are_what_the_generator_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../tools/schemas");
    if Command::new("go").arg("version").output().is_err() {
        skipped("Go is not installed, so the tables cannot be made again");
        return;
    }
    let fresh = tempfile::tempdir().unwrap();
    let made = Command::new("go").args(["run", ".", "-out"]).arg(fresh.path()).current_dir(folder).output().unwrap();
    let complaint = String::from_utf8_lossy(&made.stderr);
    if !made.status.success()
        && ["dial tcp", "no such host", "i/o timeout", "connection refused"].iter().any(|it| complaint.contains(it))
    {
        skipped(&format!("the Go modules are not cached and cannot be downloaded: {}", complaint.trim()));
        return;
    }
    assert!(made.status.success(), "{complaint}");
    for name in ["resources.json", "types.json", "gateway.json"] {
        let (new, old) = (fresh.path().join(name), root.join("src/schema").join(name));
        let same = std::fs::read(new).unwrap() == std::fs::read(old).unwrap();
        assert!(same, "{name} is stale: run `make schemas`");
    }
}
