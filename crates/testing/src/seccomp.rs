//! Runs programs under a seccomp filter that makes system calls fail, like a container's profile.

use std::process::{Command, Stdio};

/// System calls used by Sweetspot that Docker's default profile forbids in a container without capabilities.
pub const FORBIDDEN_IN_CONTAINERS: [i64; 9] = [
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_mount,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_sched_setscheduler,
    libc::SYS_setns,
    libc::SYS_unshare,
];

/// System calls that Sweetspot can replace: newer ones that old sandboxes do not know, and ones that only save work.
pub const REPLACEABLE: [i64; 12] = [
    libc::SYS_copy_file_range,
    libc::SYS_eventfd2,
    libc::SYS_fallocate,
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create,
    libc::SYS_mlock,
    libc::SYS_openat2,
    libc::SYS_pidfd_open,
    libc::SYS_renameat2,
    libc::SYS_sched_setaffinity,
    libc::SYS_statx,
    libc::SYS_sync_file_range,
];

/// Installs a filter (seccomp(2)) and executes the program. Its codes, from linux/filter.h: load the call's number
/// (BPF_LD | BPF_W | BPF_ABS), compare it (BPF_JMP | BPF_JEQ), return an action (BPF_RET).
const FILTER: &str = "\
import ctypes, os, struct, sys
error, calls = int(sys.argv[1]), [int(call) for call in sys.argv[2].split(',')]
refuse = [step for call in calls for step in ((0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | error))]
steps = [(0x20, 0, 0, 0), *refuse, (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = struct.pack('HxxxxxxQ', len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0):
    sys.exit(77)
os.execv(sys.argv[3], sys.argv[3:])";

/// A command that runs `program` with each of `calls` failing with `error` (errno). `None`, reported as a skipped test,
/// if this machine does not support such filters.
#[track_caller]
pub fn forbidding(calls: &[i64], error: i32, program: &str) -> Option<Command> {
    let list = calls.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let filtered = |program: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", FILTER, &error.to_string(), &list, program]).stdin(Stdio::null());
        command
    };
    if filtered("/bin/true").status().is_ok_and(|status| status.success()) {
        return Some(filtered(program));
    }
    crate::skipped("no seccomp filter can be had (python3, CONFIG_SECCOMP_FILTER)");
    None
}
