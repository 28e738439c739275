//! BPF programs on cgroups (bpf(2)): attach, detach, list.
//!
//! A program attached with `BPF_PROG_ATTACH`, rather than by a link, stays attached when the process that attached it is
//! killed, so it can undo its own effects. It disappears with its cgroup.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::check;

/// Where on a cgroup a program is attached (enum bpf_attach_type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum AttachType {
    /// On events of TCP connections (`BPF_CGROUP_SOCK_OPS`).
    SockOps = 3,
    /// On setsockopt(2) (`BPF_CGROUP_SETSOCKOPT`).
    SetSockOpt = 22,
}

// enum bpf_cmd
const BPF_PROG_ATTACH: libc::c_long = 8;
const BPF_PROG_DETACH: libc::c_long = 9;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_PROG_QUERY: libc::c_long = 16;

/// Allows several programs at one attach point; all of them run.
const BPF_F_ALLOW_MULTI: u32 = 2;
/// Also lists the programs inherited from parent cgroups.
const BPF_F_QUERY_EFFECTIVE: u32 = 1;

/// The maximum number of programs listed (the kernel allows 64 per cgroup).
const MAX_LISTED: usize = 256;

/// The part of union bpf_attr used to attach and detach.
#[repr(C)]
struct Attachment {
    target_fd: u32,
    attach_bpf_fd: u32,
    attach_type: u32,
    attach_flags: u32,
}

/// The part of union bpf_attr used to list programs.
#[repr(C)]
struct Query {
    target_fd: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    prog_cnt: u32,
    padding: u32,
}

/// The part of union bpf_attr used to open a program by its ID.
#[repr(C)]
struct Identity {
    prog_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// Attaches `program` to `cgroup` alongside the programs already attached.
pub fn attach(cgroup: impl AsFd, program: impl AsFd, at: AttachType) -> io::Result<()> {
    let mut attribute = attachment(&cgroup, &program, at, BPF_F_ALLOW_MULTI);
    bpf(BPF_PROG_ATTACH, &mut attribute).map(drop)
}

/// Detaches `program` from `cgroup`.
pub fn detach(cgroup: impl AsFd, program: impl AsFd, at: AttachType) -> io::Result<()> {
    let mut attribute = attachment(&cgroup, &program, at, 0);
    bpf(BPF_PROG_DETACH, &mut attribute).map(drop)
}

/// The IDs of the programs attached to `cgroup` at this attach point; with `inherited`, also those inherited from parent cgroups.
pub fn attached(cgroup: impl AsFd, at: AttachType, inherited: bool) -> io::Result<Vec<u32>> {
    let mut ids = vec![0_u32; MAX_LISTED];
    let mut query = Query {
        target_fd: cgroup.as_fd().as_raw_fd() as u32,
        attach_type: at as u32,
        query_flags: if inherited { BPF_F_QUERY_EFFECTIVE } else { 0 },
        attach_flags: 0,
        prog_ids: ids.as_mut_ptr() as u64,
        prog_cnt: MAX_LISTED as u32,
        padding: 0,
    };
    bpf(BPF_PROG_QUERY, &mut query)?;
    ids.truncate(query.prog_cnt as usize);
    Ok(ids)
}

/// Opens a descriptor of the program with this ID.
pub fn program(id: u32) -> io::Result<OwnedFd> {
    let fd = bpf(BPF_PROG_GET_FD_BY_ID, &mut Identity { prog_id: id, next_id: 0, open_flags: 0 })?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attachment(
    cgroup: &impl AsFd,
    program: &impl AsFd,
    at: AttachType,
    attach_flags: u32,
) -> Attachment {
    Attachment {
        target_fd: cgroup.as_fd().as_raw_fd() as u32,
        attach_bpf_fd: program.as_fd().as_raw_fd() as u32,
        attach_type: at as u32,
        attach_flags,
    }
}

fn bpf<T>(command: libc::c_long, attribute: &mut T) -> io::Result<i32> {
    let size = std::mem::size_of::<T>() as libc::c_long;
    // SAFETY: `attribute` is a plain structure of the given size, laid out like the start of the kernel's union; the kernel
    // takes the rest as zero. The memory it points to outlives the call.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, attribute as *mut T, size) } as i32)
}
