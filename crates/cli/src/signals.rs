//! Stopping: the first SIGINT or SIGTERM asks politely, the second ends the process with exit code 1.

use std::io::IsTerminal;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::leftovers;

/// A token that is cancelled by the first signal.
pub fn shutdown() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            if first {
                stop.cancel();
            }
        }
        tracing::warn!("second signal, leaving at once");
        if std::io::stdout().is_terminal() {
            ratatui::restore();
        }
        leftovers::sweep();
        std::process::exit(1);
    });
    Ok(token)
}
