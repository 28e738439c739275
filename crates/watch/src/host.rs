use std::io;

use sweetspot_linux::diag::{Detail, Diag, DiagConnection, TcpState};
use sweetspot_linux::namespace::NetworkNamespace;

/// The connections of one network namespace.
#[derive(Debug)]
pub struct NamespaceConnections {
    diag: Diag,
    is_own: bool,
}

impl NamespaceConnections {
    /// The connections of this process's namespace.
    pub fn own() -> Result<NamespaceConnections, String> {
        Diag::open()
            .map(|diag| NamespaceConnections { diag, is_own: true })
            .map_err(|e| no_diag(&e))
    }

    /// The connections that `diag` reads.
    pub fn of(diag: Diag) -> NamespaceConnections {
        NamespaceConnections { diag, is_own: false }
    }

    /// Whether it is known to be this process's namespace, with the same settings.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The connections of the namespace `name` (ip-netns(8)).
    pub fn named(name: &str) -> Result<NamespaceConnections, String> {
        let namespace = NetworkNamespace::named(name).map_err(|error| {
            format!(
                "cannot open the network namespace {name}: {error}; ip netns list has their names"
            )
        })?;
        NamespaceConnections::within(&namespace, name)
    }

    /// The connections of the namespace of process `pid`.
    pub fn of_process(pid: u32) -> Result<NamespaceConnections, String> {
        let here = NamespaceConnections::own()?;
        let same = |a: &NetworkNamespace, b: &NetworkNamespace| {
            Some(sweetspot_linux::live::inode(a).ok()? == sweetspot_linux::live::inode(b).ok()?)
        };
        // Without permission to look it is most likely our own.
        let Ok(theirs) = NetworkNamespace::of_process(pid) else { return Ok(here) };
        let ours = NetworkNamespace::current().map_err(|e| e.to_string())?;
        if same(&theirs, &ours) == Some(true) {
            return Ok(here);
        }
        NamespaceConnections::within(&theirs, &format!("of process {pid}"))
    }

    fn within(namespace: &NetworkNamespace, name: &str) -> Result<NamespaceConnections, String> {
        let opened = namespace.run(Diag::open).map_err(|error| {
            format!(
                "cannot enter the network namespace {name}: {error}; that needs CAP_SYS_ADMIN (run as root)"
            )
        })?;
        opened.map(NamespaceConnections::of).map_err(|e| no_diag(&e))
    }

    /// All connections in which data may flow, with `detail`.
    pub fn read(&mut self, detail: Detail) -> Result<Vec<DiagConnection>, String> {
        let mut all = Vec::new();
        let read = self.diag.connections(&TcpState::WITH_DATA, detail, |c| all.push(c));
        read.map_err(|e| no_diag(&e)).map(|()| all)
    }

    /// Reads a known connection again; `None` if it has ended.
    pub fn read_again(
        &mut self,
        seen: &DiagConnection,
        detail: Detail,
    ) -> Result<Option<DiagConnection>, String> {
        self.diag.find(seen, detail).map_err(|e| no_diag(&e))
    }
}

fn no_diag(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "this kernel cannot list TCP connections: it lacks inet_diag \
                                    (modprobe tcp_diag)"
            .to_owned(),
        _ => format!("cannot list TCP connections (sock_diag): {error}"),
    }
}
