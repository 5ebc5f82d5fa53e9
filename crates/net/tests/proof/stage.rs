//! A server in this process on a free loopback port, with its own authority.

use crate::puppet::Puppet;
use fedtvd_core::round::ClientId;
use fedtvd_data::set::Places;
use fedtvd_net::client::Security;
use fedtvd_net::federation::{
    Coordinator, Event, FederationError, Log, Options, Ready, Work, farewell, prepare,
};
use fedtvd_net::identity::{Authority, CertificateRequest};
use fedtvd_net::server::{Keys, Metrics, Server};
use fedtvd_run::configuration::Config;
use fedtvd_run::runner::End;
use hyper_util::rt::TokioIo;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Endpoint};

/// Folders and log, which outlive the server.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    pub(crate) certs: Authority,
    log: Arc<(Mutex<Vec<Event>>, Condvar)>,
}

/// A running server.
pub(crate) struct Running {
    pub(crate) coordinator: Arc<Coordinator>,
    server: Server,
    driver: JoinHandle<bool>,
}

/// The configuration of these keys, in paper mode unless they say otherwise: weights can be computed by hand.
pub(crate) fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set("strategy.mode=paper").unwrap();
    for setting in settings {
        config.set(setting).unwrap();
    }
    config
}

impl Stage {
    /// An authority with this number of clients, numbered from 0.
    pub(crate) fn new(clients: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certs = Authority::init(&folder.path().join("certs"), &[], 10).unwrap();
        for client in 0..clients {
            let wish =
                CertificateRequest { name: format!("client-{client}"), id: None, max_size: 1000, days: 5 };
            certs.issue(&wish).unwrap();
        }
        Self { folder, certs, log: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The certificate of a client.
    pub(crate) fn security(&self, client: ClientId) -> Security {
        Security::client(&self.path(&format!("certs/clients/client-{client}"))).unwrap()
    }

    /// A federation in the run directory of this name, without a running server.
    pub(crate) fn prepare(&self, out: &str, config: &Config, options: Options) -> Ready {
        self.try_prepare(out, config, options).unwrap()
    }

    /// The same, or why it cannot start.
    pub(crate) fn try_prepare(
        &self,
        out: &str,
        config: &Config,
        options: Options,
    ) -> Result<Ready, FederationError> {
        let log: Log = {
            let log = Arc::clone(&self.log);
            Arc::new(move |event: &Event| {
                log.0.lock().unwrap().push(event.clone());
                log.1.notify_all();
            })
        };
        prepare(Some(config), &Places::new(None), &self.path(out), options, log)
    }

    /// A server for this coordinator on a free port.
    pub(crate) fn listen(&self, coordinator: &Arc<Coordinator>) -> Server {
        let keys = Keys::open(&self.path("certs")).unwrap();
        Server::start(coordinator, keys, TcpListener::bind("127.0.0.1:0").unwrap(), 4).unwrap()
    }

    /// Starts or restarts a server in the run directory of this name.
    pub(crate) fn serve(&self, out: &str, config: &Config, options: Options) -> Running {
        let Ready { coordinator, work } = self.prepare(out, config, options);
        let Work::Rounds(runner) = work else { panic!("the federation is done") };
        let server = self.listen(&coordinator);
        let out = self.path(out);
        let driven = Arc::clone(&coordinator);
        let driver =
            std::thread::spawn(move || match runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() {
                End::Done(summary) => {
                    farewell(&driven, &out, &summary, Duration::ZERO).unwrap();
                    true
                }
                End::Stopped(_) => false,
            });
        Running { coordinator, server, driver }
    }

    /// Waits for an event in the log, past or future.
    pub(crate) fn until<T>(&self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let mut events = self.log.0.lock().unwrap();
        loop {
            if let Some(found) = events.iter().find_map(&wanted) {
                return found;
            }
            events = self.log.1.wait(events).unwrap();
        }
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.log.0.lock().unwrap().clone()
    }

    /// The final model of a run.
    pub(crate) fn model(&self, out: &str) -> Vec<u8> {
        std::fs::read(self.path(out).join("model.safetensors")).unwrap()
    }
}

impl Running {
    pub(crate) fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// Answers metrics and health checks; returns the address.
    pub(crate) fn monitor(&self, metrics: &Metrics) -> SocketAddr {
        self.server.monitor(TcpListener::bind("127.0.0.1:0").unwrap(), metrics.clone()).unwrap()
    }

    /// A client controlled by the test.
    pub(crate) async fn puppet(&self, stage: &Stage, client: ClientId) -> Puppet {
        Puppet::dial(&self.address(), &stage.security(client), client).await.unwrap()
    }

    /// A client's connection whose requests need not be complete.
    pub(crate) async fn channel(&self, stage: &Stage, client: ClientId) -> Channel {
        let (Security::Tls(config), address) = (stage.security(client), self.address()) else {
            panic!("a client without a certificate")
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let connect = tower::service_fn(move |_| {
            let (config, address) = (Arc::clone(&config), address.clone());
            async move {
                let stream = TcpStream::connect(address).await?;
                let name = ServerName::try_from("localhost").unwrap();
                TlsConnector::from(config).connect(name, stream).await.map(TokioIo::new)
            }
        });
        endpoint.connect_with_connector(connect).await.unwrap()
    }

    /// Stops the server abruptly; only what is on disk remains.
    pub(crate) fn stop(self) {
        self.coordinator.stop();
        assert!(!self.driver.join().unwrap(), "the run was done before it could be stopped");
        drop(self.server);
    }

    /// Waits for the end of all rounds.
    pub(crate) fn finish(self) {
        assert!(self.driver.join().unwrap());
        drop(self.server);
    }
}
