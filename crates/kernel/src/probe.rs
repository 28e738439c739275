//! The host's features that the programs need, in words.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use sweetspot_linux::cgroup::Cgroup;
use sweetspot_units::{Bytes, Duration};

use crate::command::Watch;
use crate::programs::{SocketPrograms, are_built_in};

/// One of the things that are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The feature's name.
    pub name: &'static str,
    /// Whether the host has it.
    pub there: bool,
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

/// Looks at this host. Ends with an attempt to load the programs where nothing is known to be missing.
pub fn examine() -> Vec<Finding> {
    let mut findings = Host::read().findings();
    if findings.iter().all(|finding| finding.there) {
        findings.push(loads());
    }
    findings
}

/// The first thing that this host lacks; `None` if only the kernel itself can tell.
pub fn lacking() -> Option<Finding> {
    Host::read().findings().into_iter().find(|finding| !finding.there)
}

/// The capabilities that load and attach the programs (capabilities(7)).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Programs may limit windows since Linux 5.11 (kernel commit cb81110997d1), iterators over connections since 5.15.
const OLDEST: (u32, u32) = (5, 15);

/// The facts read from a host.
#[derive(Debug)]
struct Host {
    built_in: bool,
    release: String,
    mount_point: Option<PathBuf>,
    describes_itself: bool,
    capabilities: u64,
    lockdown: String,
}

impl Host {
    fn read() -> Host {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Host {
            built_in: are_built_in(),
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            mount_point: Cgroup::mount_point().ok(),
            describes_itself: Path::new("/sys/kernel/btf/vmlinux").exists(),
            capabilities: capabilities_in(&text("/proc/self/status")),
            lockdown: text("/sys/kernel/security/lockdown"),
        }
    }

    fn findings(&self) -> Vec<Finding> {
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
        let says = match self.built_in {
            true => "in this build".to_owned(),
            false => "left out of this build".to_owned(),
        };
        let next = "apt-get install clang, and build again";
        finding("BPF programs", self.built_in, says, next)
    }

    fn version(&self) -> Finding {
        let release = &self.release;
        let there = version_in(release).is_some_and(|version| version >= OLDEST);
        let says = match there {
            true => format!("Linux {release}"),
            false => format!("Linux {release}"),
        };
        finding("kernel", there, says, "BPF may limit every connection since Linux 5.15")
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
        let wanted =
            [("CAP_BPF", CAP_BPF), ("CAP_NET_ADMIN", CAP_NET_ADMIN), ("CAP_PERFMON", CAP_PERFMON)];
        let lacking: Vec<&str> = wanted
            .into_iter()
            .filter(|(_, capability)| !has(*capability) && !has(CAP_SYS_ADMIN))
            .map(|(name, _)| name)
            .collect();
        let says = match &lacking[..] {
            [] => "may load programs".to_owned(),
            lacking => format!("lacks {}", lacking.join(", ")),
        };
        finding("rights", lacking.is_empty(), says, "run as root")
    }

    fn not_locked_down(&self) -> Finding {
        // The mode in force stands in brackets (lockdown(7)).
        let there = !self.lockdown.contains("[confidentiality]");
        let says = match there {
            true => "BPF may read kernel memory",
            false => "confidentiality, which keeps BPF out",
        };
        let next = "boot with lockdown=integrity, or use --via pidfd";
        finding("lockdown", there, says.to_owned(), next)
    }
}

/// Whether the kernel takes the programs.
fn loads() -> Finding {
    let watch = Watch {
        bulk: Bytes::new(1),
        within: Duration::from_secs(1),
        interval: Duration::from_secs(1),
        uploads: false,
    };
    let loaded = SocketPrograms::load(watch).and_then(|(mut programs, _)| programs.load_all());
    let there = loaded.is_ok();
    let says = match loaded {
        Ok(()) => "the verifier takes every program".to_owned(),
        Err(error) => error.to_string(),
    };
    finding("loading", there, says, "use --via pidfd")
}

/// A finding, with the next step where something is missing.
fn finding(name: &'static str, there: bool, says: String, next: &'static str) -> Finding {
    Finding { name, there, says, next: (!there).then_some(next) }
}

fn capabilities_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// Major and minor version of a release such as "6.18.44-cloud".
fn version_in(release: &str) -> Option<(u32, u32)> {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Host {
        Host {
            built_in: true,
            release: "6.18.44".to_owned(),
            mount_point: Some(PathBuf::from("/sys/fs/cgroup/unified")),
            describes_itself: true,
            capabilities: CAP_BPF | CAP_NET_ADMIN | CAP_PERFMON,
            lockdown: "[none] integrity confidentiality\n".to_owned(),
        }
    }

    fn lacking(host: &Host) -> Vec<(&'static str, String)> {
        let findings = host.findings().into_iter().filter(|finding| !finding.there);
        findings.map(|finding| (finding.name, finding.to_string())).collect()
    }

    #[test]
    fn a_host_that_has_all_lacks_nothing() {
        assert_eq!(lacking(&complete()), []);
        // Without the finer capabilities the coarse one does, as before Linux 5.8.
        assert_eq!(lacking(&Host { capabilities: CAP_SYS_ADMIN, ..complete() }), []);
        assert_eq!(lacking(&Host { lockdown: String::new(), ..complete() }), []);
    }

    #[test]
    fn what_is_missing_is_named_with_the_next_step() {
        let said = |host: Host, name: &str, word: &str| {
            let lacking = lacking(&host);
            assert_eq!(lacking.len(), 1, "{lacking:?}");
            assert_eq!(lacking[0].0, name);
            assert!(lacking[0].1.contains(word), "{lacking:?}");
        };
        said(Host { built_in: false, ..complete() }, "BPF programs", "apt-get install clang");
        said(
            Host { release: "5.10.0-28-amd64".to_owned(), ..complete() },
            "kernel",
            "since Linux 5.15",
        );
        said(Host { mount_point: None, ..complete() }, "cgroup v2", "mount -t cgroup2");
        said(Host { describes_itself: false, ..complete() }, "BTF", "CONFIG_DEBUG_INFO_BTF");
        said(Host { capabilities: CAP_BPF, ..complete() }, "rights", "CAP_NET_ADMIN, CAP_PERFMON");
        let lockdown = "none integrity [confidentiality]".to_owned();
        said(Host { lockdown, ..complete() }, "lockdown", "--via pidfd");
    }

    #[test]
    fn a_release_has_two_numbers_whatever_follows() {
        assert_eq!(version_in("6.18.44-cloud"), Some((6, 18)));
        assert_eq!(version_in("7.1-rc3"), Some((7, 1)));
        assert_eq!(version_in(""), None);
        assert_eq!(version_in("linux"), None);
    }

    #[test]
    fn effective_capabilities_are_read_from_the_status() {
        let status = "Name:\tcat\nCapPrm:\t0000000000000000\nCapEff:\t000000c000001000\n";
        assert_eq!(capabilities_in(status), CAP_BPF | CAP_PERFMON | CAP_NET_ADMIN);
        assert_eq!(capabilities_in(""), 0);
    }
}
