use std::io;
use std::os::fd::AsFd;

use sweetspot_units::Bytes;

use super::{ClampMethod, Info, options};
use crate::sysctl;

/// Limits the window that a socket advertises, and sets the limit again whenever the kernel overwrites it.
///
/// The limit may be set only once data flows. Before the handshake it would lower the window scale for good. Right after the
/// handshake the first full segments overwrite it (kernel commits 05f76b2d634e, a2cbb1603943). Autotuning overwrites it again
/// whenever it grows the buffer, so [`WindowActuator::hold`] must be called every control interval, ideally after every read.
#[derive(Debug)]
pub struct WindowActuator {
    clamp_method: ClampMethod,
    limit: Limit,
    /// The clamp that means "no limit".
    lifted: Bytes,
    buffer_set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// No limit was requested yet; the socket is left alone.
    Untouched,
    /// The window is limited only by the host.
    Open,
    /// The window is limited to this size.
    AtMost(Bytes),
}

impl WindowActuator {
    /// An actuator that leaves its socket alone until [`WindowActuator::set`]. `clamp_method` is the result of
    /// [`ClampMethod::find`].
    pub fn new(clamp_method: ClampMethod) -> WindowActuator {
        WindowActuator {
            clamp_method,
            limit: Limit::Untouched,
            lifted: Bytes::new(i32::MAX as u64),
            buffer_set: false,
        }
    }

    /// Limits the window; `None` lifts the limit. It takes effect at the next [`WindowActuator::hold`].
    pub fn set(&mut self, limit: Option<Bytes>) {
        self.limit = limit.map_or(Limit::Open, Limit::AtMost);
    }

    /// Applies the limit to `socket`, on which data must already flow.
    pub fn hold(&mut self, socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        let clamp = match self.limit {
            Limit::Untouched => return Ok(()),
            Limit::Open => self.lifted,
            Limit::AtMost(window) => window,
        };
        match self.clamp_method {
            ClampMethod::ClampAutotuned => options::set_window_clamp(socket, clamp),
            ClampMethod::ClampLargeBuffer => {
                if !self.buffer_set {
                    options::set_receive_buffer(socket, sysctl::rmem_max()?)?;
                    self.buffer_set = true;
                }
                options::set_window_clamp(socket, clamp)
            }
            ClampMethod::BufferAlone => {
                // The kernel doubles the request and, assuming the worst overhead, uses half of that as the window, so the
                // request is about the advertised window.
                let size = clamp.get().min(sysctl::rmem_max()?.get());
                options::set_receive_buffer(socket, Bytes::new(size)).map(|_| ())
            }
        }
    }

    /// The window that `socket` advertised last; `None` on kernels before 6.2.
    pub fn advertised(socket: impl AsFd) -> io::Result<Option<Bytes>> {
        Info::read(socket).map(|info| info.rcv_wnd)
    }
}
