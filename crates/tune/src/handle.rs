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
use crate::leftovers::held_window;
use crate::sample::{self, Seen};

/// The mechanism that samples and limits a connection.
#[derive(Debug, Clone)]
pub enum Handle {
    /// Borrowed from the process that holds it, which started at this time (clock ticks since boot).
    Borrowed(LiveSocket, u64),
    /// From inside the kernel.
    InKernel(KernelConnection),
}

/// The result of a sample.
pub enum Sampled {
    /// The kernel's reports since the last sample, oldest first.
    Seen(Vec<Seen>),
    /// Nothing new, or it is out of reach for a moment.
    Nothing,
    /// The connection is over.
    Over,
}

impl Handle {
    /// Its socket's cookie.
    pub fn cookie(&self) -> u64 {
        match self {
            Handle::Borrowed(socket, _) => socket.cookie(),
            Handle::InKernel(connection) => connection.cookie(),
        }
    }

    /// Whether a tuner holds its window, as far as this user can find out. Only one at a time is inside the kernel.
    pub fn is_held_by_tuner(&self) -> bool {
        match self {
            Handle::Borrowed(socket, _) => held_window(socket.inode(), socket.cookie()).is_some(),
            Handle::InKernel(_) => false,
        }
    }

    /// Looks at it, and sets its limit again if it is set from outside. A `touched` one, on which a limit was set, is
    /// searched for when its program moves it. A clamp that the program set itself is noted in `own`.
    pub fn sample(&self, limit: Option<Bytes>, touched: bool, own: &mut OwnClamp) -> Sampled {
        match self {
            Handle::Borrowed(socket, _) => match sample::sample(socket, limit, touched, own) {
                Ok(Ok(seen)) => Sampled::Seen(vec![seen]),
                // The limits on it are yet to be undone.
                Err(error) if touched && !error.is_over() => Sampled::Nothing,
                _ => Sampled::Over,
            },
            Handle::InKernel(connection) => match connection.take_news(clock::now()) {
                Latest::News(records) => {
                    Sampled::Seen(records.iter().map(Seen::of_record).collect())
                }
                Latest::Nothing => Sampled::Nothing,
                Latest::Over => Sampled::Over,
            },
        }
    }

    /// Sees to it that the limit is lifted whatever happens to this process. The error means that nobody would.
    pub fn lease(&self, leases: &mut Leases, applied: AppliedLimit) -> io::Result<()> {
        match self {
            Handle::Borrowed(socket, started) => leases.take(socket, *started, applied),
            // The programs have a lease of their own for all connections.
            Handle::InKernel(_) if leases.are_worthless() => Err(io::ErrorKind::BrokenPipe.into()),
            Handle::InKernel(_) => Ok(()),
        }
    }

    /// Limits its window, as planned with the program's `own` clamp; `None` lifts the limit. The error says why the
    /// kernel refused. A connection that is gone is no error; the next sample finds that out.
    pub fn limit(&self, to: Option<Bytes>, own: &mut OwnClamp) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                heard(sample::limit(socket, to, own), "TCP_WINDOW_CLAMP").map(drop)
            }
            // The program in the kernel knows the program's own.
            Handle::InKernel(connection) => Ok(connection.limit(to)?),
        }
    }

    /// Limits its pace.
    pub fn pace(&self, to: Option<Rate>) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                heard(sample::pace(socket, to), "SO_MAX_PACING_RATE").map(drop)
            }
            Handle::InKernel(connection) => Ok(connection.pace(to)?),
        }
    }

    /// Chooses its congestion control; `None` brings the host's back.
    pub fn choose_congestion(&self, to: Option<CongestionName>) -> Result<(), TuneError> {
        match self {
            Handle::Borrowed(..) => Err(TuneError::CongestionNeedsBpf),
            Handle::InKernel(connection) => {
                Ok(connection.choose_congestion(to.map(CongestionName::bytes))?)
            }
        }
    }

    /// Undoes what was done to it. Does nothing if it is gone.
    pub fn undo(&self, applied: AppliedLimit) {
        match (self, applied) {
            (Handle::Borrowed(socket, _), applied) => applied.undo(socket),
            (Handle::InKernel(connection), AppliedLimit::Window(_)) => drop(connection.limit(None)),
            // The program in the kernel remembers what was before.
            (Handle::InKernel(connection), AppliedLimit::Pace(_)) => drop(connection.pace(None)),
        }
    }

    /// Begins to watch for clamps that its program sets. The kernel has not grown the buffer of one `is_young`, which
    /// advertised `mss`.
    pub fn own_clamp(&self, is_young: bool, mss: Bytes) -> OwnClamp {
        match self {
            Handle::Borrowed(socket, _) => sample::own_clamp(socket, is_young, mss),
            // The program in the kernel keeps it.
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

    /// The pace limit of its program, before ours is set.
    pub fn own_pace(&self) -> Result<Option<Rate>, TuneError> {
        match self {
            Handle::Borrowed(..) => self.kernel_pace(),
            // The program in the kernel knows it; ours may be set already, if the path is remembered.
            Handle::InKernel(_) => Ok(None),
        }
    }

    /// The kernel's pace limit: `None` for none. The error is the kernel's refusal.
    pub fn kernel_pace(&self) -> Result<Option<Rate>, TuneError> {
        match self {
            Handle::Borrowed(socket, _) => {
                let read = socket.with(|fd| options::max_pacing_rate(fd));
                heard(read, "SO_MAX_PACING_RATE").map(Option::flatten)
            }
            Handle::InKernel(connection) => {
                Ok(connection.latest().and_then(|record| record.max_pacing_rate))
            }
        }
    }

    /// Asks for a sample so often, where samples come by themselves.
    pub fn set_interval(&self, interval: Duration) {
        if let Handle::InKernel(connection) = self {
            // Where there is no room for it, samples come at the first interval.
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

/// The kernel's answer; `None` if the connection cannot be borrowed any more.
fn heard<T>(
    answer: Result<io::Result<T>, BorrowError>,
    option: &'static str,
) -> Result<Option<T>, TuneError> {
    match answer {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(source)) => Err(TuneError::Refused { option, source }),
        Err(_) => Ok(None),
    }
}
