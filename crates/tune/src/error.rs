use std::io;
use std::path::PathBuf;

use sweetspot_kernel::KernelError;
use sweetspot_linux::live::BorrowError;
use thiserror::Error;

/// Why connections within a scope cannot be tuned.
#[derive(Debug, Error)]
pub enum Untunable {
    /// The sockets of a process cannot be borrowed.
    #[error("{0}")]
    Process(#[from] BorrowError),
    /// This process may not inspect some processes.
    #[error(
        "no permission for the sockets of {processes} processes: their downloads are left alone (run \
         as root, or with CAP_SYS_PTRACE like packaging/sweetspot-tune.service)"
    )]
    Processes {
        /// The number of such processes.
        processes: usize,
    },
    /// Another tuner tunes a connection, too.
    #[error(
        "another tuner also tunes {program}[{pid}], and each overwrites the other's limits; end one of them, or give \
         them different connections"
    )]
    OtherTuner {
        /// The connection's process.
        pid: u32,
        /// Its name.
        program: String,
    },
}

/// Why tuning cannot begin or continue, or a connection cannot be limited.
#[derive(Debug, Error)]
pub enum TuneError {
    /// The sockets of the process to be tuned cannot be borrowed.
    #[error("cannot tune: {0}")]
    Process(#[from] BorrowError),
    /// There is no such process.
    #[error("there is no process {pid}; `ps -e` lists the running ones")]
    NoProcess {
        /// The process ID.
        pid: u32,
    },
    /// The process is a thread of the kernel.
    #[error(
        "PID {pid} ({name}) is a kernel thread and has no connections; `sweetspot top` lists the processes that have some"
    )]
    KernelThread {
        /// The process ID.
        pid: u32,
        /// The thread's name.
        name: String,
    },
    /// The kernel's connection table cannot be read.
    #[error(
        "cannot list this host's connections: {source}; the kernel needs CONFIG_INET_DIAG \
         (modprobe tcp_diag)"
    )]
    Connections {
        /// The kernel's reason.
        source: io::Error,
    },
    /// The BPF programs failed.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// The kernel refuses to read or set a socket option.
    #[error("the kernel refuses {option}: {source}")]
    Refused {
        /// The option's name in C.
        option: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A borrowed socket keeps its congestion control.
    #[error("a congestion control can be chosen only via bpf")]
    CongestionNeedsBpf,
    /// The tuned cgroup was removed.
    #[error("the cgroup {path} is gone, and its connections with it")]
    CgroupGone {
        /// Its directory.
        path: PathBuf,
    },
    /// A step failed for another reason.
    #[error("{step}: {source}")]
    Failed {
        /// The step that failed.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl TuneError {
    /// For `map_err`: adds the step that failed.
    pub fn at(step: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| TuneError::Failed { step, source }
    }
}
