//! Signals of the operating system: SIGTERM and SIGINT stop the server, SIGHUP makes it read its list of clients again.

use crate::server::Server;
use std::io;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Save and stop: SIGTERM, SIGINT (Ctrl-C).
    Stop,
    /// Read again what may have changed on disk: SIGHUP.
    Reload,
}

/// Lets SIGHUP no longer end this process: a server that does not listen yet has nothing to read again.
#[cfg(unix)]
pub fn survive_hangups() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    // Tokio keeps its handler until the process ends, also if nobody listens.
    signal(SignalKind::hangup()).map(drop)
}

/// Does nothing: there are no hangups.
#[cfg(not(unix))]
pub fn survive_hangups() -> io::Result<()> {
    Ok(())
}

impl Server {
    /// Calls `handle` for every signal from now on, as long as the server runs.
    #[cfg(unix)]
    pub fn on_signals(&self, handle: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let _inside = runtime.enter();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        runtime.spawn(async move {
            loop {
                let (received, what) = tokio::select! {
                    received = terminate.recv() => (received, Signal::Stop),
                    received = interrupt.recv() => (received, Signal::Stop),
                    received = hangup.recv() => (received, Signal::Reload),
                };
                if received.is_none() {
                    return;
                }
                handle(what);
            }
        });
        Ok(())
    }

    /// Calls `handle` for every Ctrl-C from now on, as long as the server runs.
    #[cfg(not(unix))]
    pub fn on_signals(&self, handle: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                while tokio::signal::ctrl_c().await.is_ok() {
                    handle(Signal::Stop);
                }
            });
        }
        Ok(())
    }
}
