//! The work of a server: one task for all clients, or the task in each client's line.

use std::path::Path;
use std::sync::Arc;

use sweetspot_control::TransferSummary;
use sweetspot_linux::file;
use sweetspot_linux::tcp::ClampMethod;
use sweetspot_protocol::clients::Client;
use sweetspot_protocol::{RelativePath, Role};
use sweetspot_units::Duration;

use crate::ends::receive_config::ReceiveConfig;
use crate::ends::send::SendConfig;
use crate::files::incoming::Bounds;
use crate::files::provenance::{Provenance, View};
use crate::files::quota::QuotaTable;
use crate::files::target::{Target, TargetDirectory};
use crate::files::temp_file::Keep;
use crate::observer::FileLog;
use crate::options::{Purpose, ReceiveOptions, SendOptions};
use crate::{Result, TransferError};

pub(crate) enum Work {
    /// One task for all clients.
    One(Task),
    /// The task in each client's line of the clients file.
    Clients(Box<ClientWork>),
}

#[derive(Clone)]
pub(crate) enum Task {
    Receive(Arc<ReceiveConfig>),
    Send(Arc<SendConfig>),
}

/// The reason why a task is impossible here, and the peer's version of it.
pub(crate) struct Impossible {
    pub error: TransferError,
    pub reason: &'static str,
}

/// The end of a session that moved files.
pub(crate) struct Ended {
    pub result: Result<TransferSummary>,
    /// Whether this end wrote anything. Always true at a sender, because the receiver may have written.
    pub wrote: bool,
}

impl From<Impossible> for Ended {
    fn from(impossible: Impossible) -> Ended {
        Ended { result: Err(impossible.error), wrote: false }
    }
}

pub(crate) struct ClientWork {
    receive: ReceiveOptions,
    pub clamp_method: ClampMethod,
    send: SendOptions,
    quotas: QuotaTable,
    provenance: Arc<Provenance>,
}

impl Work {
    /// Whether it writes to standard output, which cannot be undone.
    pub fn writes_to_output(&self) -> bool {
        let Work::One(Task::Receive(config)) = self else { return false };
        config.options.target == Target::Output
    }

    /// The work for `purpose`, this end's role in it, and how long a transfer may go on after its path broke.
    pub fn prepare(purpose: &Purpose) -> Result<(Work, Option<Role>, Duration)> {
        match purpose {
            Purpose::Receive(receive) => {
                if let Target::Into(directory) = &receive.target {
                    check_target(directory)?;
                }
                let config = Arc::new(ReceiveConfig::new(receive.clone())?);
                let work = Work::One(Task::Receive(config));
                Ok((work, Some(Role::Receiver), receive.retry_for))
            }
            Purpose::Send(send) => {
                let config = Arc::new(SendConfig::new(SendOptions::clone(send))?);
                Ok((Work::One(Task::Send(config)), Some(Role::Sender), send.retry_for))
            }
            Purpose::Clients(service) => {
                let receive = service.receive.clone();
                let clamp_method = ReceiveConfig::new(receive.clone())?.clamp_method;
                let (send, quotas) = (service.send.clone(), QuotaTable::default());
                let provenance = Arc::default();
                let work = ClientWork { receive, clamp_method, send, quotas, provenance };
                Ok((Work::Clients(Box::new(work)), None, Duration::ZERO))
            }
        }
    }
}

/// Checks at the start that the directory can be written to, before any sender connects.
fn check_target(directory: &Path) -> Result<()> {
    let wrong = |source| TransferError::Directory { path: directory.to_owned(), source };
    let target = TargetDirectory::open(directory, View::default()).map_err(wrong)?;
    target.sweep().map_err(wrong)?;
    let probe = RelativePath::new("write-test")?;
    let tried = target.temp_file(&probe, Keep::Never);
    tried.map(drop).map_err(|source| TransferError::write(directory.to_owned(), source))
}

impl ClientWork {
    /// The task for `client`; this end's role is `role`.
    pub fn task(
        &self,
        client: &Client,
        role: Role,
        log: Option<Arc<dyn FileLog>>,
    ) -> Result<Task, Impossible> {
        // The client need not learn about faults in this host's directories.
        let (task, reason) = match role {
            Role::Receiver => {
                let config = self.receiving(client, log);
                (
                    config.map(Arc::new).map(Task::Receive),
                    "the directory there cannot be used; ask its operator to check it",
                )
            }
            Role::Sender => {
                let reason = if client.rights.write {
                    "nothing has been sent to your directory yet; send something first, or ask the operator"
                } else {
                    "the operator has put nothing into your directory yet; ask for it"
                };
                (self.sending(client, log).map(Arc::new).map(Task::Send), reason)
            }
        };
        task.map_err(|error| Impossible { error, reason })
    }

    /// The options for receiving from `client`. Its directory is created if it is missing.
    fn receiving(&self, client: &Client, log: Option<Arc<dyn FileLog>>) -> Result<ReceiveConfig> {
        let wrong = |source| TransferError::Directory { path: client.directory.clone(), source };
        file::make_directory(&client.directory).map_err(wrong)?;
        check_target(&client.directory)?;
        let quota = |limit| self.quotas.of(&client.directory, limit).map_err(wrong);
        let quota = client.quota.map(quota).transpose()?;
        let options = ReceiveOptions {
            target: Target::Into(client.directory.clone()),
            overwrite: client.rights.overwrite,
            dotfiles: client.rights.dotfiles,
            ..self.receive.clone()
        };
        // Several clients may share a directory.
        let view = View {
            client: Some(client.credential.id()),
            own_only: !client.rights.read,
            provenance: Arc::clone(&self.provenance),
        };
        let bounds = Bounds { quota, log, view };
        Ok(ReceiveConfig { options, clamp_method: self.clamp_method, bounds })
    }

    /// The options for sending the contents of its directory to `client`.
    fn sending(&self, client: &Client, log: Option<Arc<dyn FileLog>>) -> Result<SendConfig> {
        let mut options = self.send.clone();
        options.sources.paths = vec![client.directory.join("")];
        let mut config = SendConfig::new(options)?;
        // The client does not learn the directory's path on this host.
        config.list.name.clone_from(&client.name);
        config.list.offered.clone_from(&client.name);
        config.log = log;
        Ok(config)
    }
}
