use sweetspot_linux::diag::{Detail, Diag, DiagConnection, TcpState};
use sweetspot_linux::namespace::NetworkNamespace;

use crate::HostError;

/// The connections of one network namespace.
#[derive(Debug)]
pub struct NamespaceConnections {
    diag: Diag,
    is_own: bool,
}

impl NamespaceConnections {
    /// The connections of this process's namespace.
    pub fn own() -> Result<NamespaceConnections, HostError> {
        Diag::open()
            .map(|diag| NamespaceConnections { diag, is_own: true })
            .map_err(HostError::listing)
    }

    /// The connections that `diag` reads.
    pub fn of(diag: Diag) -> NamespaceConnections {
        NamespaceConnections { diag, is_own: false }
    }

    /// Whether it is certainly this process's namespace, with the same settings.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The connections of the namespace `name` (ip-netns(8)).
    pub fn named(name: &str) -> Result<NamespaceConnections, HostError> {
        let namespace = NetworkNamespace::named(name)
            .map_err(|source| HostError::Open { namespace: name.to_owned(), source })?;
        NamespaceConnections::within(&namespace, name)
    }

    /// The connections of the namespace of process `pid`.
    pub fn of_process(pid: u32) -> Result<NamespaceConnections, HostError> {
        let here = NamespaceConnections::own()?;
        let same = |a: &NetworkNamespace, b: &NetworkNamespace| {
            Some(sweetspot_linux::live::inode(a).ok()? == sweetspot_linux::live::inode(b).ok()?)
        };
        // If permission is missing, it is most likely our own namespace.
        let Ok(theirs) = NetworkNamespace::of_process(pid) else { return Ok(here) };
        let ours = NetworkNamespace::current().map_err(HostError::Own)?;
        if same(&theirs, &ours) == Some(true) {
            return Ok(here);
        }
        NamespaceConnections::within(&theirs, &format!("of process {pid}"))
    }

    fn within(namespace: &NetworkNamespace, name: &str) -> Result<NamespaceConnections, HostError> {
        let opened = namespace
            .run(Diag::open)
            .map_err(|source| HostError::Enter { namespace: name.to_owned(), source })?;
        opened.map(NamespaceConnections::of).map_err(HostError::listing)
    }

    /// All connections that may carry data, with `detail`.
    pub fn read(&mut self, detail: Detail) -> Result<Vec<DiagConnection>, HostError> {
        self.read_in(&TcpState::WITH_DATA, detail)
    }

    /// All connections in the state SYN-SENT, with the kernel's counters.
    pub fn read_opening(&mut self) -> Result<Vec<DiagConnection>, HostError> {
        self.read_in(&[TcpState::SynSent], Detail { info: true, ..Detail::NONE })
    }

    fn read_in(
        &mut self,
        states: &[TcpState],
        detail: Detail,
    ) -> Result<Vec<DiagConnection>, HostError> {
        let mut all = Vec::new();
        let read = self.diag.connections(states, detail, |c| all.push(c));
        read.map_err(HostError::listing).map(|()| all)
    }

    /// Reads a known connection again; `None` if it has ended.
    pub fn read_again(
        &mut self,
        seen: &DiagConnection,
        detail: Detail,
    ) -> Result<Option<DiagConnection>, HostError> {
        self.diag.find(seen, detail).map_err(HostError::listing)
    }
}
