//! Service addresses as sockets, where others dial them: what kube-proxy does, by listening.
//!
//! Every port of every Service is bound on the Service's own address, and each connection goes on to a ready endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio_util::task::AbortOnDropHandle;

use crate::names::Names;
use crate::net::Listener;

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
                match names.dial(&address.ip().to_string(), address.port()).await {
                    Ok(mut far) => drop(tokio::io::copy_bidirectional(&mut near, &mut far).await),
                    Err(error) => tracing::debug!(%address, %error, "nobody behind the service"),
                }
            });
        }
    }))
}
