//! The host features that the programs need, described in words.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::host::version_of;
use sweetspot_linux::processes;

/// A required feature of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The feature's name.
    pub name: &'static str,
    /// Whether the host has it.
    pub is_present: bool,
    /// The value, or the missing part.
    pub says: String,
    /// The command that installs the missing part.
    pub next: Option<&'static str>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.says)?;
        self.next.map_or(Ok(()), |next| write!(f, " ({next})"))
    }
}

/// The first missing feature of this host; `None` if only an attempt to load can show one.
pub fn lacking() -> Option<Finding> {
    Host::read().findings().into_iter().find(|finding| !finding.is_present)
}

/// Why this kernel may reject the programs, if its version explains that.
pub(crate) fn explanation() -> Option<String> {
    Host::read().explanation()
}

/// The capabilities needed to load and attach the programs (capabilities(7)).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Programs may limit windows since Linux 5.11 (kernel commit cb81110997d1), which is also the first version with the
/// coarse clock (d05512618056). Versions only explain a failure: distributions backport features, so an attempt to load
/// decides.
const LIMITS_SINCE: (u32, u32) = (5, 11);
/// Iterators may enable events on existing connections since Linux 6.12 (TCP_BPF_SOCK_OPS_CB_FLAGS).
const EXISTING_SINCE: (u32, u32) = (6, 12);

#[derive(Debug)]
pub(crate) struct Host {
    little_endian: bool,
    release: String,
    mount_point: Option<PathBuf>,
    describes_itself: bool,
    capabilities: u64,
    lockdown: String,
}

impl Host {
    pub fn read() -> Host {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Host {
            little_endian: cfg!(target_endian = "little"),
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            mount_point: Cgroup::mount_point().ok(),
            describes_itself: Path::new("/sys/kernel/btf/vmlinux").exists(),
            capabilities: processes::effective_capabilities(),
            lockdown: text("/sys/kernel/security/lockdown"),
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        vec![
            self.programs(),
            self.version(),
            self.cgroups(),
            self.type_information(),
            self.rights(),
            self.not_locked_down(),
        ]
    }

    fn programs(&self) -> Finding {
        let says = match self.little_endian {
            true => "in this build",
            false => "compiled for little-endian machines only",
        };
        finding("BPF programs", self.little_endian, says.to_owned(), "use --via pidfd")
    }

    fn version(&self) -> Finding {
        finding("kernel", true, format!("Linux {}", self.release), "")
    }

    /// Why this kernel may reject the programs, if its version explains that.
    pub fn explanation(&self) -> Option<String> {
        let is_old = version_of(&self.release).is_some_and(|version| version < LIMITS_SINCE);
        let (major, minor) = LIMITS_SINCE;
        is_old.then(|| format!("BPF can limit windows only from Linux {major}.{minor}"))
    }

    /// Whether connections older than the tuner are tuned. Newer ones always are, so this feature never counts as missing.
    pub fn existing(&self) -> Finding {
        let (major, minor) = EXISTING_SINCE;
        let says = match version_of(&self.release).is_some_and(|version| version < EXISTING_SINCE) {
            true => format!("before Linux {major}.{minor}, only new connections can be tuned"),
            false => format!("since Linux {major}.{minor}, existing connections can be tuned, too"),
        };
        finding("connections", true, says, "")
    }

    fn cgroups(&self) -> Finding {
        let says = match &self.mount_point {
            Some(path) => format!("mounted at {}", path.display()),
            None => "not mounted".to_owned(),
        };
        let next = "mount -t cgroup2 none /sys/fs/cgroup/unified";
        finding("cgroup v2", self.mount_point.is_some(), says, next)
    }

    fn type_information(&self) -> Finding {
        let says = match self.describes_itself {
            true => "/sys/kernel/btf/vmlinux",
            false => "no /sys/kernel/btf/vmlinux",
        };
        let next = "the kernel needs CONFIG_DEBUG_INFO_BTF";
        finding("BTF", self.describes_itself, says.to_owned(), next)
    }

    fn rights(&self) -> Finding {
        let has = |capability| self.capabilities & capability != 0;
        let required =
            [("CAP_BPF", CAP_BPF), ("CAP_NET_ADMIN", CAP_NET_ADMIN), ("CAP_PERFMON", CAP_PERFMON)];
        let lacking: Vec<&str> = required
            .into_iter()
            .filter(|(_, capability)| !has(*capability) && !has(CAP_SYS_ADMIN))
            .map(|(name, _)| name)
            .collect();
        let says = match &lacking[..] {
            [] => "allowed to load BPF programs".to_owned(),
            lacking => format!("lacks {}", lacking.join(", ")),
        };
        finding("rights", lacking.is_empty(), says, "run as root")
    }

    fn not_locked_down(&self) -> Finding {
        // The active mode is in brackets (lockdown(7)).
        let is_present = !self.lockdown.contains("[confidentiality]");
        let says = match is_present {
            true => "BPF may read kernel memory",
            false => "confidentiality mode, which blocks BPF",
        };
        let next = "boot with lockdown=integrity, or use --via pidfd";
        finding("lockdown", is_present, says.to_owned(), next)
    }
}

/// A finding, with the next step if the feature is missing.
pub(crate) fn finding(
    name: &'static str,
    is_present: bool,
    says: String,
    next: &'static str,
) -> Finding {
    Finding { name, is_present, says, next: (!is_present).then_some(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Host {
        Host {
            little_endian: true,
            release: "6.18.44".to_owned(),
            mount_point: Some(PathBuf::from("/sys/fs/cgroup/unified")),
            describes_itself: true,
            capabilities: CAP_BPF | CAP_NET_ADMIN | CAP_PERFMON,
            lockdown: "[none] integrity confidentiality\n".to_owned(),
        }
    }

    fn lacking(host: &Host) -> Vec<(&'static str, String)> {
        let findings = host.findings().into_iter().filter(|finding| !finding.is_present);
        findings.map(|finding| (finding.name, finding.to_string())).collect()
    }

    #[test]
    fn a_complete_host_lacks_nothing() {
        assert_eq!(lacking(&complete()), []);
        // CAP_SYS_ADMIN replaces the finer capabilities, as before Linux 5.8.
        assert_eq!(lacking(&Host { capabilities: CAP_SYS_ADMIN, ..complete() }), []);
        assert_eq!(lacking(&Host { lockdown: String::new(), ..complete() }), []);
    }

    #[test]
    fn each_missing_requirement_is_named_with_the_next_step() {
        let assert_missing = |host: Host, name: &str, word: &str| {
            let lacking = lacking(&host);
            assert_eq!(lacking.len(), 1, "{lacking:?}");
            assert_eq!(lacking[0].0, name);
            assert!(lacking[0].1.contains(word), "{lacking:?}");
        };
        assert_missing(Host { little_endian: false, ..complete() }, "BPF programs", "--via pidfd");
        assert_missing(Host { mount_point: None, ..complete() }, "cgroup v2", "mount -t cgroup2");
        assert_missing(
            Host { describes_itself: false, ..complete() },
            "BTF",
            "CONFIG_DEBUG_INFO_BTF",
        );
        assert_missing(
            Host { capabilities: CAP_BPF, ..complete() },
            "rights",
            "CAP_NET_ADMIN, CAP_PERFMON",
        );
        let lockdown = "none integrity [confidentiality]".to_owned();
        assert_missing(Host { lockdown, ..complete() }, "lockdown", "--via pidfd");
    }

    #[test]
    fn the_kernel_version_explains_but_never_decides() {
        let of = |release: &str| Host { release: release.to_owned(), ..complete() };
        for release in ["5.10.0-32-amd64", "5.14.0-503.el9.x86_64", "6.1.0-50-amd64", "odd", ""] {
            assert_eq!(lacking(&of(release)), [], "{release}");
        }
        let since = Some("BPF can limit windows only from Linux 5.11".to_owned());
        assert_eq!(of("5.10.0-32-amd64").explanation(), since);
        assert_eq!(of("5.14.0-503.el9.x86_64").explanation(), None);
        let existing = |release: &str| of(release).existing().says;
        assert!(existing("6.1.0-50-amd64").ends_with("only new connections can be tuned"));
        assert!(existing("6.12.0-1").ends_with("existing connections can be tuned, too"));
        assert!(existing("7.2.13").ends_with("existing connections can be tuned, too"));
    }
}
