//! Tuning via bpf: the programs and the cgroup that they are attached to.

use std::iter;
use std::sync::{Arc, Mutex};

use sweetspot_kernel::{Connections, KernelError, SocketPrograms, Watch};
use sweetspot_linux::cgroup::{Cgroup, CgroupError};
use sweetspot_tune::{Chosen, KernelScope, undo};
use sweetspot_units::Duration;

/// The prefix of the cgroups that `tune run` creates.
const OWN_CGROUP: &str = "sweetspot-";

/// A cgroup that has been empty for this long is not about to start a command.
const ABANDONED: Duration = Duration::from_secs(10);

/// Removes cgroups that killed tuners left below this process's own.
pub fn remove_abandoned() {
    if let Ok(here) = Cgroup::of(std::process::id()) {
        here.remove_empty(OWN_CGROUP, ABANDONED);
    }
}

/// Creates a cgroup below `here`. In a PID namespace, another process outside it may have this process's ID.
fn create_own(here: &Cgroup) -> Result<Cgroup, CgroupError> {
    let name = format!("{OWN_CGROUP}{}", std::process::id());
    let mut names = iter::once(name.clone()).chain((1..).map(|n| format!("{name}-{n}")));
    let created = names.find_map(|name| match here.create(&name) {
        Err(error) if error.already_exists() => None,
        created => Some(created),
    });
    created.expect("an endless list of names")
}

/// For a command, which has few connections: also watches uploads that are not tuned.
fn with_uploads(watch: Watch) -> Watch {
    Watch { uploads: true, ..watch }
}

/// The BPF programs attached to a cgroup.
pub struct Inside {
    programs: Arc<Mutex<SocketPrograms>>,
    connections: Connections,
    cgroup: Cgroup,
    is_own: bool,
}

impl Inside {
    /// Attaches to a new cgroup below this process's own.
    pub fn own_cgroup(watch: Watch) -> Result<Inside, KernelError> {
        let watch = with_uploads(watch);
        // Loads the programs first: if that fails, no cgroup is created.
        let (programs, connections) = SocketPrograms::load(watch)?;
        remove_abandoned();
        let here = Cgroup::of(std::process::id())?;
        let cgroup = create_own(&here)?;
        Inside::attached(programs, connections, cgroup, true)
    }

    /// Attaches to the cgroup of process `pid`.
    pub fn around(pid: u32, watch: Watch) -> Result<Inside, KernelError> {
        let watch = with_uploads(watch);
        let (programs, connections) = SocketPrograms::load(watch)?;
        Inside::attached(programs, connections, Cgroup::of(pid)?, false)
    }

    /// Attaches to the cgroup called `name`, or to the root cgroup. Its scope also finds existing connections.
    pub fn on(name: Option<&str>, watch: Watch) -> Result<Inside, KernelError> {
        let (programs, connections) = SocketPrograms::load(watch)?;
        let cgroup = name.map_or_else(Cgroup::root, Cgroup::named)?;
        Inside::attached(programs, connections, cgroup, false)
    }

    fn attached(
        mut programs: SocketPrograms,
        connections: Connections,
        cgroup: Cgroup,
        is_own: bool,
    ) -> Result<Inside, KernelError> {
        if let Err(error) = programs.attach(&cgroup) {
            if is_own {
                // The next run removes a cgroup left behind.
                let _ = cgroup.dissolve();
            }
            return Err(error);
        }
        Ok(Inside { programs: Arc::new(Mutex::new(programs)), connections, cgroup, is_own })
    }

    /// The cgroup.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Returns a function that undoes everything. A process that inherits it can also call it.
    pub fn undo(&self) -> impl Fn() + Sync + use<> {
        let programs = Arc::clone(&self.programs);
        let own = self.is_own.then(|| self.cgroup.try_clone().ok()).flatten();
        move || {
            undo(&programs);
            // Moves processes that outlive the command to the cgroup above.
            let _ = own.as_ref().map(Cgroup::dissolve);
        }
    }

    /// The scope of the cgroup's connections.
    pub fn scope(self, chosen: Chosen) -> KernelScope {
        let Inside { programs, connections, cgroup, is_own } = self;
        let scope = KernelScope::new(cgroup, programs, connections, chosen);
        // A cgroup created for the command has no earlier connections.
        if !is_own {
            report_untracked(&scope.find_present());
        }
        scope
    }
}

/// Reports that existing connections are not tuned, given the result of the search for them.
pub fn report_untracked(found: &Result<bool, KernelError>) {
    let reason = match found {
        Ok(true) => return,
        Ok(false) => "BPF follows them since Linux 6.12".to_owned(),
        Err(error) => error.to_string(),
    };
    err!(
        "sweetspot: via bpf, only new connections are tuned here, not existing ones ({reason}); --via pidfd tunes both"
    );
}
