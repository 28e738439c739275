//! Tuning from inside the kernel: the programs and the cgroup that they are attached to.

use std::iter;
use std::sync::{Arc, Mutex};

use sweetspot_kernel::{Connections, KernelError, SocketPrograms, Watch};
use sweetspot_linux::cgroup::{Cgroup, CgroupError};
use sweetspot_tune::{Chosen, KernelScope, undo};
use sweetspot_units::Duration;

/// The beginning of the names of cgroups that `tune run` makes.
const OWN_CGROUP: &str = "sweetspot-";

/// A cgroup empty for this long is not about to start a command.
const ABANDONED: Duration = Duration::from_secs(60);

/// A new cgroup below `here`. In a PID namespace, this process's number may belong to another process elsewhere.
fn create_own(here: &Cgroup) -> Result<Cgroup, CgroupError> {
    let name = format!("{OWN_CGROUP}{}", std::process::id());
    let mut names = iter::once(name.clone()).chain((1..).map(|n| format!("{name}-{n}")));
    let created = names.find_map(|name| match here.create(&name) {
        Err(error) if error.is_taken() => None,
        created => Some(created),
    });
    created.expect("names without an end")
}

/// For the connections of a command, which are few: its uploads are reported if they are not tuned, too.
fn with_uploads(watch: Watch) -> Watch {
    Watch { uploads: true, ..watch }
}

/// Programs on a cgroup.
pub struct Inside {
    programs: Arc<Mutex<SocketPrograms>>,
    connections: Connections,
    cgroup: Cgroup,
    is_own: bool,
}

impl Inside {
    /// In a new cgroup below this process's own.
    pub fn own_cgroup(watch: Watch) -> Result<Inside, KernelError> {
        let watch = with_uploads(watch);
        // First the programs: where they cannot be had, nothing is made.
        let (programs, connections) = SocketPrograms::load(watch)?;
        let here = Cgroup::of(std::process::id())?;
        here.remove_empty(OWN_CGROUP, ABANDONED);
        let cgroup = create_own(&here)?;
        Inside::attached(programs, connections, cgroup, true)
    }

    /// On the cgroup that process `pid` is in.
    pub fn around(pid: u32, watch: Watch) -> Result<Inside, KernelError> {
        let watch = with_uploads(watch);
        let (programs, connections) = SocketPrograms::load(watch)?;
        Inside::attached(programs, connections, Cgroup::of(pid)?, false)
    }

    /// On the cgroup called `name`, or on the one above all. Connections that are there already are seen, too.
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
                // The next run removes leftovers.
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

    /// Undoes everything, in this process or in one that inherited it.
    pub fn undo(&self) -> impl Fn() + Sync + use<> {
        let programs = Arc::clone(&self.programs);
        let own = self.is_own.then(|| self.cgroup.try_clone().ok()).flatten();
        move || {
            undo(&programs);
            // Processes that outlive the command go back to where it came from.
            let _ = own.as_ref().map(Cgroup::dissolve);
        }
    }

    /// The scope of its connections.
    pub fn scope(self, chosen: Chosen) -> KernelScope {
        let Inside { programs, connections, cgroup, is_own } = self;
        let scope = KernelScope::new(cgroup, programs, connections, chosen);
        // Nothing was in a cgroup that was made for the command.
        if !is_own {
            report_unfollowed(&scope.find_present());
        }
        scope
    }
}

/// Reports that connections of before are not tuned, given the result of looking for them: no silence about what is missed.
pub fn report_unfollowed(found: &Result<bool, KernelError>) {
    let reason = match found {
        Ok(true) => return,
        Ok(false) => "BPF follows them since Linux 6.12".to_owned(),
        Err(error) => error.to_string(),
    };
    err!(
        "sweetspot: via bpf, only new connections are tuned here, not existing ones ({reason}); --via pidfd tunes both"
    );
}
