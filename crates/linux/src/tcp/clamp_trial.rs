//! Finds the [`ClampMethod`] of this kernel on a loopback connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use sweetspot_units::{Bytes, Duration};

use super::{ClampMethod, Info, WindowActuator, options};
use crate::clock;

/// The windows tried: down, up, down. On loopback, segments are up to 64 KiB long.
const TRIAL_WINDOWS: [Bytes; 3] = [Bytes::new(200_000), Bytes::new(400_000), Bytes::new(150_000)];
/// The data transferred before a window is judged: a window shrinks only as data arrives.
const BYTES_PER_TRIAL: usize = 1_600_000;
/// Tolerated relative error of the window: it is rounded up to the window scale, and the kernel advertises whole segments.
const MAX_WINDOW_ERROR: f64 = 0.35;
/// The time limit for trying one method.
const METHOD_TIMEOUT: Duration = Duration::from_millis(120);

impl ClampMethod {
    /// Tries the methods on a loopback connection, the simplest first, and returns the first that moves the window down and
    /// up. Takes about 10 ms, and at most 0.4 s. Returns `ClampAutotuned`, which every kernel supports, if no method works or
    /// the machine is too busy for a result.
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

    /// Whether this method moves the window; `None` if the time limit was reached first.
    fn works(self) -> io::Result<Option<bool>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (mut receiver, _) = listener.accept()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let mut actuator = WindowActuator::new(self);
        let deadline = clock::now() + METHOD_TIMEOUT;
        // Before the first limit, data must flow and autotuning must have opened the window.
        pump(&mut sender, &mut receiver, &mut actuator, 2 * BYTES_PER_TRIAL, deadline)?;
        for window in TRIAL_WINDOWS {
            actuator.set(Some(window));
            pump(&mut sender, &mut receiver, &mut actuator, BYTES_PER_TRIAL, deadline)?;
            if clock::now() > deadline {
                return Ok(None);
            }
            let Some(seen) = advertised(&sender, &receiver)? else { return Ok(None) };
            let off = (seen.as_f64() - window.as_f64()).abs() / window.as_f64();
            if off > MAX_WINDOW_ERROR {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

/// The advertised window as the receiver reports it, or as the sender received it.
fn advertised(sender: &TcpStream, receiver: &TcpStream) -> io::Result<Option<Bytes>> {
    match Info::read(receiver)?.rcv_wnd {
        Some(window) => Ok(Some(window)),
        None => Ok(Info::read(sender)?.snd_wnd),
    }
}

/// Moves `n` bytes from `sender` to `receiver`, calling [`WindowActuator::hold`] after every read.
fn pump(
    sender: &mut TcpStream,
    receiver: &mut TcpStream,
    actuator: &mut WindowActuator,
    n: usize,
    deadline: sweetspot_units::Time,
) -> io::Result<()> {
    let (block, mut sink) = ([0u8; 64 * 1024], [0u8; 256 * 1024]);
    let mut moved = 0;
    // Fills the buffer completely, then drains it: autotuning sizes the buffer by the data delivered in one RTT, so a trickle
    // would leave it at its initial size.
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
    fn the_trial_finds_a_clamp_method_besides_the_buffer_alone() {
        assert_ne!(ClampMethod::find().unwrap(), ClampMethod::BufferAlone);
    }
}
