//! Service addresses as sockets, where others dial them: what kube-proxy does, by listening.
//!
//! Every port of every Service is bound on the Service's own address, and each connection goes on to one ready endpoint. As
//! with kube-proxy, whoever is led to a pod that has just stopped finds out: no other one is tried.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use tokio_util::task::AbortOnDropHandle;

use crate::names::Names;
use crate::net::{Listener, Stream};

/// Binds what the Services offer, and keeps up with them until the handle is dropped.
pub(crate) fn serve(names: Names) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut changes = names.service_changes();
        let mut bound = BTreeMap::<SocketAddr, AbortOnDropHandle<()>>::new();
        loop {
            let services = names.services();
            let wanted = services.iter().flat_map(|(_, entry)| {
                let ports = entry.ports.iter().map(|offered| offered.port);
                ports.flat_map(|port| entry.cluster_ips.iter().map(move |address| SocketAddr::new(*address, port)))
            });
            let wanted: std::collections::BTreeSet<_> = wanted.collect();
            bound.retain(|address, _| wanted.contains(address));
            for address in wanted {
                if bound.contains_key(&address) {
                    continue;
                }
                match names.net().bind(address).await {
                    Ok(listener) => drop(bound.insert(address, accept(names.clone(), listener))),
                    Err(error) => tracing::warn!(%address, %error, "a service address cannot be served"),
                }
            }
            if changes.rung().await.is_err() {
                return;
            }
        }
    }))
}

fn accept(names: Names, mut listener: Listener) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let address = listener.address();
        while let Ok(mut near) = listener.accept().await {
            let names = names.clone();
            // A connection outlives its Service, as it does behind kube-proxy.
            tokio::spawn(async move {
                match dial(&names, address).await {
                    Ok(mut far) => drop(tokio::io::copy_bidirectional(&mut near, &mut far).await),
                    Err(error) => tracing::debug!(%address, %error, "nobody behind the service"),
                }
            });
        }
    }))
}

/// A connection to the endpoint whose turn it is.
async fn dial(names: &Names, service: SocketAddr) -> io::Result<Stream> {
    let endpoints = names.resolve(&service.ip().to_string(), service.port())?;
    let next = endpoints.first().ok_or(io::ErrorKind::ConnectionRefused)?;
    names.net().connect(*next).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Service;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use kube::Api;
    use kube::api::PostParams;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::apiserver::ApiServer;
    use crate::{Clock, Net, Seed, Wire};

    const PORT: u16 = 80;

    /// A pod that greets whoever comes.
    async fn greets(net: &Net, address: &str) {
        let mut listener = net.bind(SocketAddr::new(address.parse().unwrap(), PORT)).await.unwrap();
        tokio::spawn(async move {
            while let Ok(mut stream) = listener.accept().await {
                stream.write_all(b"ahoy").await.unwrap();
            }
        });
    }

    #[tokio::test]
    async fn whoever_is_led_to_a_pod_that_stopped_finds_out() {
        let api = ApiServer::start(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1), Seed::new(1));
        let (client, net) = (api.client("test"), Net::new(Wire::Memory));
        let service = json!({
            "metadata": {"name": "app"}, "spec": {"clusterIP": "10.96.0.5", "ports": [{"name": "http", "port": PORT}]},
        });
        let services: Api<Service> = Api::namespaced(client.clone(), "default");
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        let endpoint = |address| json!({"addresses": [address], "conditions": {"ready": true}});
        let slice = json!({
            "metadata": {"name": "app", "labels": {"kubernetes.io/service-name": "app"}}, "addressType": "IPv4",
            "endpoints": [endpoint("10.244.0.1"), endpoint("10.244.0.2")], "ports": [{"name": "http", "port": PORT}],
        });
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
        slices.create(&PostParams::default(), &serde_json::from_value(slice).unwrap()).await.unwrap();
        // The other one has stopped, and its endpoint is not taken away yet.
        greets(&net, "10.244.0.1").await;

        let names = Names::start(&client, net.clone());
        names.synced().await;
        let _serving = serve(names);
        let service = SocketAddr::new("10.96.0.5".parse().unwrap(), PORT);
        let mut greeted = 0;
        for _ in 0..4 {
            // It listens once it has heard of the Service.
            let reached = async {
                loop {
                    match net.connect(service).await {
                        Ok(stream) => break stream,
                        Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                    }
                }
            };
            let mut stream = tokio::time::timeout(Duration::from_secs(30), reached).await.expect("it never listens");
            let mut said = String::new();
            stream.read_to_string(&mut said).await.unwrap();
            greeted += usize::from(said == "ahoy");
        }
        assert_eq!(greeted, 2, "every other connection is led to the pod that is gone");
    }
}
