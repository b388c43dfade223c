//! Several API servers at once, on one etcd.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use seaway_drydock::manifests;
use tempfile::TempDir;

use super::control_plane::{ApiServer, Etcd};
use super::haven::in_haven;

/// The port of the first; the others follow.
const PORT: u16 = 6443;

/// API servers that know nothing of each other.
pub struct Fleet {
    pub servers: Vec<ApiServer>,
    _etcd: Etcd,
    _folder: TempDir,
}

impl Fleet {
    /// One for each name.
    pub async fn start(names: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let etcd = Etcd::start(folder.path());
        let mut servers = Vec::new();
        for (name, port) in names.iter().zip(PORT..) {
            servers.push(ApiServer::start(name, port, folder.path()).await);
        }
        Self { servers, _etcd: etcd, _folder: folder }
    }
}

#[test]
fn three_clusters_share_a_store_and_nothing_else() {
    let parts = ["etcd", "kube-apiserver"];
    in_haven("real::fleet::three_clusters_share_a_store_and_nothing_else", &parts, async || {
        let names = ["tokyo", "osaka", "kobe"];
        let fleet = Fleet::start(&names).await;
        for (server, name) in fleet.servers.iter().zip(names) {
            let manifest =
                format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}");
            manifests::apply(&server.client("admin").await, &manifest).await.unwrap();
        }
        for (server, name) in fleet.servers.iter().zip(names) {
            let configs: Api<ConfigMap> = Api::namespaced(server.client("admin").await, "default");
            let found = configs.list(&ListParams::default()).await.unwrap().items;
            let found: Vec<_> = found.into_iter().filter_map(|config| config.metadata.name).collect();
            assert_eq!(found, [name]);
        }
    });
}
