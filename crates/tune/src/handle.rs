use std::io;

use sweetspot_control::{CongestionName, OwnClamp};
use sweetspot_linux::clock;
use sweetspot_linux::live::{BorrowError, LiveSocket};
use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::TuneError;
use crate::guard::Leases;
use crate::kernel::{KernelConnection, Latest};
use crate::lease::AppliedLimit;
use crate::leftovers::is_recorded;
use crate::sample::{self, KernelReport};

/// The mechanism that samples and limits a connection.
#[derive(Debug, Clone)]
pub enum Handle {
    /// A socket duplicated from its process (pidfd), and the start time of that process, in clock ticks since boot.
    Borrowed(LiveSocket, u64),
    /// A connection that BPF programs sample and limit.
    InKernel(KernelConnection),
}

/// The result of a sample.
pub enum Sampled {
    /// The kernel's reports since the last sample, oldest first.
    KernelReport(Vec<KernelReport>),
    /// No new report, or the socket cannot be reached at the moment.
    Nothing,
    /// The connection is over.
    Closed,
}

impl Handle {
    /// The socket's cookie (`SO_COOKIE`).
    pub fn cookie(&self) -> u64 {
        match self {
            Handle::Borrowed(socket, _) => socket.cookie(),
            Handle::InKernel(connection) => connection.cookie(),
        }
    }

    /// Whether another tuner tunes its window, as far as this user can find out. Only one at a time is inside the kernel.
    pub fn is_held_by_tuner(&self) -> bool {
        match self {
            Handle::Borrowed(socket, _) => {
                let cookie = socket.cookie();
                is_recorded(Some(socket.inode()), cookie)
                    || sweetspot_kernel::held_window(cookie).is_some()
            }
            Handle::InKernel(connection) => {
                let inode = connection.latest().and_then(|record| record.inode);
                is_recorded(inode, connection.cookie())
            }
        }
    }

    /// Samples the connection, and sets its limit again if something overwrote it. A socket that was limited (`touched`) is
    /// followed when its program moves it. A clamp that the program itself set is noted in `own`.
    pub fn sample(&self, limit: Option<Bytes>, touched: bool, own: &mut OwnClamp) -> Sampled {
        match self {
            Handle::Borrowed(socket, _) => match sample::sample(socket, limit, touched, own) {
                Ok(Ok(seen)) => Sampled::KernelReport(vec![seen]),
                // It still has limits to undo.
                Err(error) if touched && !error.is_over() => Sampled::Nothing,
                _ => Sampled::Closed,
            },
            Handle::InKernel(connection) => match connection.take_new_records(clock::now()) {
                Latest::Records(records) => {
                    Sampled::KernelReport(records.iter().map(KernelReport::of_record).collect())
                }
                Latest::Nothing => Sampled::Nothing,
                Latest::Closed => Sampled::Closed,
            },
        }
    }

    /// Ensures that the limit is lifted even if this process is killed. Fails if the guardian is gone.
    pub fn lease(&self, leases: &mut Leases, applied: AppliedLimit) -> io::Result<()> {
        match self {
            Handle::Borrowed(socket, started) => leases.take(socket, *started, applied),
            // One lease of the BPF programs covers all connections.
            Handle::InKernel(_) if leases.are_unguarded() => Err(io::ErrorKind::BrokenPipe.into()),
            Handle::InKernel(_) => Ok(()),
        }
    }

    /// Limits its window as planned with the program's `own` clamp; `None` lifts the limit. Fails if the kernel refuses the
    /// option. A closed connection is not an error: the next sample reports its end.
    pub fn limit(&self, to: Option<Bytes>, own: &mut OwnClamp) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                option_result(sample::limit(socket, to, own), "TCP_WINDOW_CLAMP").map(drop)
            }
            // The BPF program keeps the program's own clamp.
            Handle::InKernel(connection) => Ok(connection.limit(to)?),
        }
    }

    /// Limits its pacing rate.
    pub fn pace(&self, to: Option<Rate>) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                option_result(sample::pace(socket, to), "SO_MAX_PACING_RATE").map(drop)
            }
            Handle::InKernel(connection) => Ok(connection.pace(to)?),
        }
    }

    /// Chooses its congestion control; `None` restores the host's.
    pub fn choose_congestion(&self, to: Option<CongestionName>) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(..) => Err(TuneError::CongestionNeedsBpf),
            Handle::InKernel(connection) => {
                Ok(connection.choose_congestion(to.map(CongestionName::bytes))?)
            }
        }
    }

    /// Undoes this limit. Does nothing if the connection is gone.
    pub fn undo(&self, applied: AppliedLimit) {
        match (self, applied) {
            (Handle::Borrowed(socket, _), applied) => applied.undo(socket),
            (Handle::InKernel(connection), AppliedLimit::Window(_)) => drop(connection.limit(None)),
            // The BPF program keeps the previous rate.
            (Handle::InKernel(connection), AppliedLimit::Pace(_)) => drop(connection.pace(None)),
        }
    }

    /// Starts to watch for clamps that the program itself sets. If the connection `is_young`, the kernel has not grown its
    /// buffer yet. `mss` is the advertised MSS.
    pub fn own_clamp(&self, is_young: bool, mss: Bytes) -> OwnClamp {
        match self {
            Handle::Borrowed(socket, _) => sample::own_clamp(socket, is_young, mss),
            // The BPF program keeps the program's own clamp.
            Handle::InKernel(_) => OwnClamp::default(),
        }
    }

    /// Notes in `own` the clamp that its program or the kernel set since the last sample.
    pub fn note_clamp(&self, own: &mut OwnClamp) {
        if let Handle::Borrowed(socket, _) = self {
            sample::note_clamp(socket, own);
        }
    }

    /// The kernel's window clamp; `None` if it cannot be read.
    pub fn clamp(&self) -> Option<Bytes> {
        match self {
            Handle::Borrowed(socket, _) => socket.with(|fd| options::window_clamp(fd)).ok()?.ok(),
            Handle::InKernel(connection) => Some(connection.latest()?.clamp),
        }
    }

    /// The program's own pacing rate limit, before ours is set.
    pub fn own_pace(&self) -> Result<Option<Rate>, TuneError> {
        match self {
            Handle::Borrowed(..) => self.kernel_pace(),
            // The BPF program keeps it. On a remembered path our limit may already be set.
            Handle::InKernel(_) => Ok(None),
        }
    }

    /// The kernel's pacing rate limit; `None`: no limit. Fails if the kernel refuses the option.
    pub fn kernel_pace(&self) -> Result<Option<Rate>, TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                let read = socket.with(|fd| options::max_pacing_rate(fd));
                option_result(read, "SO_MAX_PACING_RATE").map(Option::flatten)
            }
            Handle::InKernel(connection) => {
                Ok(connection.latest().and_then(|record| record.max_pacing_rate))
            }
        }
    }

    /// Sets the time between two samples, if the BPF programs take them.
    pub fn set_interval(&self, interval: Duration) {
        if let Handle::InKernel(connection) = self {
            // If no map entry is free, the first interval stays in force.
            let _ = connection.set_interval(interval);
        }
    }

    /// Forgets a connection that is over.
    pub fn forget(&self) {
        if let Handle::InKernel(connection) = self {
            connection.forget();
        }
    }
}

/// The kernel's answer; `None` if the socket can no longer be borrowed.
fn option_result<T>(
    answer: Result<io::Result<T>, BorrowError>,
    option: &'static str,
) -> Result<Option<T>, TuneError> {
    match answer {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(source)) => Err(TuneError::Refused { option, source }),
        Err(_) => Ok(None),
    }
}
