use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use sweetspot_units::{Bytes, Duration};

use super::{Info, WindowActuator, options};
use crate::clock;

/// How this kernel's advertised window can be steered on a live socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClampMethod {
    /// TCP_WINDOW_CLAMP alone, over a buffer that the kernel goes on tuning.
    ClampAutotuned,
    /// SO_RCVBUF once, as large as `net.core.rmem_max` allows, then TCP_WINDOW_CLAMP.
    ClampLargeBuffer,
    /// SO_RCVBUF alone.
    BufferAlone,
}

impl fmt::Display for ClampMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ClampMethod::ClampAutotuned => "TCP_WINDOW_CLAMP over an autotuned buffer",
            ClampMethod::ClampLargeBuffer => "SO_RCVBUF at its largest, then TCP_WINDOW_CLAMP",
            ClampMethod::BufferAlone => "SO_RCVBUF alone",
        })
    }
}

/// The windows tried: down, up, down. On loopback the segments are up to 64 KiB long.
const STEPS: [Bytes; 3] = [Bytes::new(200_000), Bytes::new(400_000), Bytes::new(150_000)];
/// Data that passes before a step is judged: a window shrinks only as data arrives.
const PER_STEP: usize = 1_600_000;
/// The window may be this share off: it is rounded up to the window scale, and the kernel
/// advertises in steps of a segment.
const TOLERANCE: f64 = 0.35;
/// No kernel needs longer for one method on loopback.
const PATIENCE: Duration = Duration::from_millis(120);

impl ClampMethod {
    /// Tries the methods on a loopback pair, simplest first, and returns the first that moves the
    /// window down and up. Takes some 10 ms, and at most 0.4 s. Where that cannot be told, because
    /// none does or the machine is too busy, it is the clamp, which every kernel has.
    pub fn find() -> io::Result<ClampMethod> {
        for clamp_method in
            [ClampMethod::ClampAutotuned, ClampMethod::ClampLargeBuffer, ClampMethod::BufferAlone]
        {
            match clamp_method.works()? {
                Some(false) => {}
                Some(true) => return Ok(clamp_method),
                None => break,
            }
        }
        Ok(ClampMethod::ClampAutotuned)
    }

    /// Whether this method moves the window; `None` if it took too long to tell.
    fn works(self) -> io::Result<Option<bool>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (mut receiver, _) = listener.accept()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let mut actuator = WindowActuator::new(self);
        let deadline = clock::now() + PATIENCE;
        // Data must flow before the first limit, and autotuning must have given the window room.
        pump(&mut sender, &mut receiver, &mut actuator, 2 * PER_STEP, deadline)?;
        for window in STEPS {
            actuator.set(Some(window));
            pump(&mut sender, &mut receiver, &mut actuator, PER_STEP, deadline)?;
            if clock::now() > deadline {
                return Ok(None);
            }
            let Some(seen) = advertised(&sender, &receiver)? else { return Ok(None) };
            let off = (seen.as_f64() - window.as_f64()).abs() / window.as_f64();
            if off > TOLERANCE {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

/// The receiver's own word where its kernel gives it, else what the sender saw.
fn advertised(sender: &TcpStream, receiver: &TcpStream) -> io::Result<Option<Bytes>> {
    match Info::read(receiver)?.rcv_wnd {
        Some(window) => Ok(Some(window)),
        None => Ok(Info::read(sender)?.snd_wnd),
    }
}

/// Moves `n` bytes from `sender` to `receiver`, holding the actuator's limit after every read.
fn pump(
    sender: &mut TcpStream,
    receiver: &mut TcpStream,
    actuator: &mut WindowActuator,
    n: usize,
    deadline: sweetspot_units::Time,
) -> io::Result<()> {
    let (block, mut sink) = ([0u8; 64 * 1024], [0u8; 256 * 1024]);
    let mut moved = 0;
    // Filled to the brim, then drained: autotuning grows the buffer by what one round trip
    // delivered, so a trickle would leave it at its initial size.
    while moved < n && clock::now() < deadline {
        while would_block(sender.write(&block))? > 0 {}
        while options::unread(&*receiver)? > Bytes::ZERO {
            moved += would_block(receiver.read(&mut sink))?;
            actuator.hold(&*receiver)?;
        }
    }
    Ok(())
}

fn would_block(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clamp_steers_every_kernel_that_lets_itself_be_steered() {
        assert_ne!(ClampMethod::find().unwrap(), ClampMethod::BufferAlone);
    }
}
