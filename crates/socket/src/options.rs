use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sweetspot_control::TuneEventKind;
use sweetspot_sizing::{HeffnerVariant, Sizing, SizingError};
use sweetspot_units::{Bytes, Volume};

use crate::both_ends::BothEnds;
use crate::report::Report;

/// How the window of a socket is sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SocketSizing {
    /// `sobas:live`: the path's full rate without a standing queue. Sockets to the same host share a window.
    #[default]
    Live,
    /// `less-than-best-effort`: only the capacity that cross traffic leaves (RFC 9840, with a target that a loss lowers).
    /// Sockets to the same host share a window.
    LessThanBestEffort,
    /// `drs`: Dynamic Right-Sizing.
    RightSizing,
    /// `heffner` and its variants: Heffner's receiver.
    Heffner(HeffnerVariant),
    /// `fixed:SIZE`: this window for each socket.
    Fixed(Bytes),
    /// `kernel`: the window is left to the kernel and only reported.
    Kernel,
}

impl SocketSizing {
    /// Whether sockets to the same host are sized together.
    pub(crate) fn is_shared(self) -> bool {
        match self {
            SocketSizing::Live | SocketSizing::LessThanBestEffort => true,
            SocketSizing::RightSizing
            | SocketSizing::Heffner(_)
            | SocketSizing::Fixed(_)
            | SocketSizing::Kernel => false,
        }
    }

    /// The corresponding sizing of [`sweetspot_sizing`].
    pub fn sizing(self) -> Sizing {
        match self {
            SocketSizing::Live => Sizing::SobasLive,
            SocketSizing::LessThanBestEffort => Sizing::Rledbat,
            SocketSizing::RightSizing => Sizing::RightSizing,
            SocketSizing::Heffner(variant) => Sizing::Heffner(variant),
            SocketSizing::Fixed(size) => Sizing::Fixed(Volume::Bytes(size)),
            SocketSizing::Kernel => Sizing::Kernel,
        }
    }
}

impl FromStr for SocketSizing {
    type Err = SizingError;
    fn from_str(text: &str) -> Result<SocketSizing, SizingError> {
        Ok(match text {
            "less-than-best-effort" => SocketSizing::LessThanBestEffort,
            _ => match text.parse()? {
                Sizing::SobasLive => SocketSizing::Live,
                Sizing::Rledbat => SocketSizing::LessThanBestEffort,
                Sizing::RightSizing => SocketSizing::RightSizing,
                Sizing::Heffner(variant) => SocketSizing::Heffner(variant),
                Sizing::Fixed(Volume::Bytes(size)) => SocketSizing::Fixed(size),
                Sizing::Kernel => SocketSizing::Kernel,
                // The others need a known path, the peer's help, or a window before the handshake.
                _ => return Err(SizingError::Unknown(text.to_owned())),
            },
        })
    }
}

impl fmt::Display for SocketSizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketSizing::LessThanBestEffort => f.pad("less-than-best-effort"),
            other => other.sizing().fmt(f),
        }
    }
}

/// A change that the library made to a socket, or the reason why it could not.
#[derive(Debug, Clone)]
pub struct SocketEvent {
    /// The kind of change.
    pub kind: TuneEventKind,
    /// The reason, as text.
    pub why: String,
    /// The socket's state after the change.
    pub report: Report,
}

/// Called for each [`SocketEvent`], on the thread that polls, without a lock of the library. It must not block: detaching a
/// socket waits for a running observer.
pub type Observer = Arc<dyn Fn(&SocketEvent) + Send + Sync>;

/// How a socket is to be sized.
#[derive(Clone)]
pub struct Options {
    /// How the window is sized.
    pub sizing: SocketSizing,
    /// Whether to pace data sent on the socket (`SO_MAX_PACING_RATE`) when a standing queue forms.
    pub uploads: bool,
    /// Whether to turn the kernel's autotuning on again if the program turned it off by setting `SO_RCVBUF` or `SO_SNDBUF`
    /// (`SO_BUF_LOCK`, Linux 5.16). It stays on after the socket is detached.
    pub unlock_buffers: bool,
    /// This end's part, if the peer's program uses this library, too. `sobas:live` then works as `sobas`: the sender answers
    /// probes and sends packet trains, which show the right window within the first round trips. Uploads are paced as the
    /// peer's receiver asks, unless `uploads` is off.
    pub both_ends: Option<BothEnds>,
    /// Called for each change.
    pub observer: Option<Observer>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sizing: SocketSizing::default(),
            uploads: true,
            unlock_buffers: false,
            both_ends: None,
            observer: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { sizing, uploads, unlock_buffers, both_ends, observer } = self;
        f.debug_struct("Options")
            .field("sizing", sizing)
            .field("uploads", uploads)
            .field("unlock_buffers", unlock_buffers)
            .field("both_ends", both_ends)
            .field("observer", &observer.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_sizing_parses_back() {
        let names = "sobas:live less-than-best-effort drs heffner heffner:twice fixed:300kB kernel";
        for name in names.split(' ') {
            assert_eq!(name.parse::<SocketSizing>().unwrap().to_string(), name);
        }
        assert_eq!("rledbat".parse(), Ok(SocketSizing::LessThanBestEffort));
    }

    #[test]
    fn sizings_that_one_end_alone_cannot_run_are_refused() {
        for name in ["sobas", "sobas:paper", "bdp", "max", "linux", "fixed:0B", "fixed:9pkt", ""] {
            assert!(name.parse::<SocketSizing>().is_err(), "{name}");
        }
    }
}
