//! The processes of this host that /proc shows, and their sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sweetspot_units::Duration;

/// The number of bytes of a process's name that the kernel keeps (TASK_COMM_LEN minus the null byte).
pub const MAX_PROCESS_NAME_BYTES: usize = 15;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its process ID.
    pub pid: u32,
    /// The process ID of its parent, or of the process that adopted it.
    pub parent: u32,
    /// The first [`MAX_PROCESS_NAME_BYTES`] bytes of its program's file name, or the name that the process set.
    /// Characters other than printable ASCII and letters and digits of any script become `?`, as in ps(1), because
    /// any user may set a name.
    pub name: String,
    /// The user that it runs as.
    pub uid: u32,
    /// When it started, in clock ticks since boot. Process ID and start time together are unique.
    pub started: u64,
    /// Whether it is a thread of the kernel, which has no descriptors.
    pub is_kernel: bool,
}

/// The inode of the PID namespace in which these process IDs are valid.
pub fn pid_namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|file| file.ino())
}

/// A descriptor of a process that is a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The descriptor's number in the process.
    pub fd: i32,
    /// The socket's inode, as [`DiagConnection::inode`](crate::diag::DiagConnection::inode).
    pub inode: u64,
}

/// The process IDs of all processes, in ascending order.
pub fn all() -> io::Result<Vec<u32>> {
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    Ok(pids)
}

impl Process {
    /// Reads process `pid` from /proc.
    pub fn read(pid: u32) -> io::Result<Process> {
        let folder = folder(pid);
        let uid = fs::metadata(&folder)?.uid();
        let stat = fs::read(folder.join("stat"))?;
        parse(pid, uid, &String::from_utf8_lossy(&stat)).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The path of its program. Needs the right to inspect the process (ptrace(2)).
    pub fn program(&self) -> io::Result<PathBuf> {
        fs::read_link(folder(self.pid).join("exe"))
    }
}

/// PF_KTHREAD of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Parses fields 1, 2, 4, 9 and 22 of /proc/PID/stat (proc(5)). The name is in parentheses and may itself contain some.
fn parse(pid: u32, uid: u32, stat: &str) -> Option<Process> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut words = tail.split_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    let flags: u64 = words.nth(4)?.parse().ok()?;
    let started = words.nth(12)?.parse().ok()?;
    let shown = |c: char| matches!(c, ' '..='~') || c.is_alphanumeric();
    let name = name.chars().map(|c| if shown(c) { c } else { '?' }).collect();
    let is_kernel = flags & KERNEL_THREAD != 0;
    Some(Process { pid, parent, name, uid, started, is_kernel })
}

/// The process IDs of `root` and all its descendants, in ascending order; processes that end in the meantime may be
/// missing.
pub fn family(root: u32) -> Vec<u32> {
    let (mut family, mut unseen) = (BTreeSet::from([root]), vec![root]);
    while let Some(pid) = unseen.pop() {
        unseen.extend(children(pid).into_iter().filter(|child| family.insert(*child)));
    }
    family.into_iter().collect()
}

/// The children of every thread of `pid` (CONFIG_PROC_CHILDREN, which systemd needs too).
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(folder(pid).join("task")) else { return Vec::new() };
    let lists = threads.filter_map(|t| fs::read_to_string(t.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map_while(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The CPU time of all threads of `pid` that have not ended (/proc/PID/schedstat; needs CONFIG_SCHED_INFO).
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(folder(pid).join("task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let ns = text.split_whitespace().next().and_then(|n| n.parse().ok());
        sum += Duration::from_nanos(ns.ok_or(io::ErrorKind::InvalidData)?);
    }
    Ok(sum)
}

/// This process's effective capabilities, a bit for each (capabilities(7)); none if they cannot be read.
pub fn effective_capabilities() -> u64 {
    capabilities_in(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn capabilities_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// Whether this process may inspect the processes of other users (CAP_SYS_PTRACE).
pub fn may_inspect_others() -> bool {
    const CAP_SYS_PTRACE: u64 = 1 << 19;
    effective_capabilities() & CAP_SYS_PTRACE != 0
}

/// The sockets among the descriptors of `pid`. Needs the right to inspect the process (ptrace(2),
/// PTRACE_MODE_READ_FSCREDS) and its directory: the same user, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. With
/// CAP_SYS_PTRACE alone use [`ProcessHandle::sockets`](crate::live::ProcessHandle::sockets).
pub fn sockets(pid: u32) -> io::Result<Vec<Descriptor>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder(pid).join("fd"))? {
        let entry = entry?;
        // A descriptor that was closed in the meantime has no target.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let inode = target.to_str().and_then(socket_inode);
        let fd = entry.file_name().to_str().and_then(|n| n.parse().ok());
        found.extend(fd.zip(inode).map(|(fd, inode)| Descriptor { fd, inode }));
    }
    Ok(found)
}

/// The number of descriptor slots of `pid`; every descriptor in use is below it. Any user may read it.
pub(crate) fn descriptor_slots(pid: u32) -> io::Result<i32> {
    let status = fs::read_to_string(folder(pid).join("status"))?;
    let slots = status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok());
    slots.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    #[test]
    fn effective_capabilities_are_read_from_proc_status() {
        let status = "Name:\tcat\nCapPrm:\t0000000000000000\nCapEff:\t000000c000001000\n";
        // CAP_NET_ADMIN, CAP_PERFMON and CAP_BPF.
        assert_eq!(capabilities_in(status), 1 << 12 | 1 << 38 | 1 << 39);
        assert_eq!(capabilities_in(""), 0);
    }

    #[test]
    fn a_process_name_may_contain_parentheses_and_spaces() {
        let stat = "42 (a) b (c) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = parse(42, 0, stat).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) b (c", 7));
        assert_eq!(process.started, 12345);
        assert!(!process.is_kernel);
        // The flags of kthreadd on Linux 6.18.
        let stat = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
        assert!(parse(2, 0, stat).unwrap().is_kernel);
        assert_eq!(parse(42, 0, "42 (a"), None);
        assert_eq!(parse(42, 0, ""), None);
    }

    #[test]
    fn a_process_name_cannot_contain_terminal_escapes() {
        let stat = "42 (a\u{1b}[31m\nb\u{9b}) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(parse(42, 0, stat).unwrap().name, "a?[31m?b?");
    }

    #[test]
    fn the_sockets_of_this_process_are_listed() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = sockets(std::process::id()).unwrap();
        let ours = found.iter().find(|d| d.fd == socket.as_raw_fd()).unwrap();
        assert_eq!(ours.inode, crate::live::inode(&socket).unwrap());
        assert_eq!(socket_inode("pipe:[12]"), None);
    }

    #[test]
    fn a_child_belongs_to_the_family_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let us = std::process::id();
        assert!(family(us).contains(&child.id()));
        assert_eq!(Process::read(child.id()).unwrap().parent, us);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!family(us).contains(&child.id()));
    }
}
