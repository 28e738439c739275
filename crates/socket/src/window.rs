//! The limit of one socket's window. It never loosens a clamp that the program set itself, and restores it at the end.

use std::io;
use std::os::fd::AsFd;

use sweetspot_control::{BufferState, OwnClamp};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::Bytes;

/// Begins to watch for clamps that the program sets, on a connection that is not limited yet. The kernel has not grown
/// the buffer of one `is_young`, which advertised `mss`. `info` was read just now.
pub fn begin(fd: impl AsFd, info: &Info, is_young: bool, mss: Bytes) -> io::Result<OwnClamp> {
    let mut own = OwnClamp::new(is_young, options::receive_buffer(fd.as_fd())?, mss);
    note(fd, info, &mut own)?;
    Ok(own)
}

/// Notes the clamp of a connection, given an `info` read just now, and returns it.
pub fn note(fd: impl AsFd, info: &Info, own: &mut OwnClamp) -> io::Result<Bytes> {
    let fd = fd.as_fd();
    let before = buffer_state(fd, info)?;
    let clamp = options::window_clamp(fd)?;
    let after = if own.is_set(clamp) { before } else { buffer_state(fd, &Info::read(fd)?)? };
    own.handle_clamp(clamp, before, after);
    Ok(clamp)
}

/// Notes the clamp of a connection and sets its `limit` again, if it has one: the kernel overwrites a clamp whenever it
/// grows the buffer (kernel commits 05f76b2d634e, a2cbb1603943). `info` was read just now.
pub fn hold(
    fd: impl AsFd,
    info: &Info,
    limit: Option<Bytes>,
    own: &mut OwnClamp,
) -> io::Result<()> {
    let fd = fd.as_fd();
    let clamp = note(fd, info, own)?;
    if limit.is_some() && !own.is_set(clamp) {
        own.plan(limit);
        set(fd, limit, own)?;
    }
    Ok(())
}

/// Sets the clamp that `own` has planned for `limit`.
pub fn set(fd: impl AsFd, limit: Option<Bytes>, own: &mut OwnClamp) -> io::Result<()> {
    let fd = fd.as_fd();
    options::set_window_clamp(fd, own.planned())?;
    if own.handle_set(buffer_state(fd, &Info::read(fd)?)?) {
        own.plan(limit);
        options::set_window_clamp(fd, own.planned())?;
    }
    Ok(())
}

/// Lifts the limit: the program's own clamp is back, also one that it set a moment ago.
pub fn lift(fd: impl AsFd, own: &mut OwnClamp) -> io::Result<()> {
    let fd = fd.as_fd();
    note(fd, &Info::read(fd)?, own)?;
    own.plan(None);
    set(fd, None, own)
}

fn buffer_state(fd: impl AsFd, info: &Info) -> io::Result<BufferState> {
    Ok(BufferState { size: options::receive_buffer(fd)?, largest_segment: info.rcv_mss })
}
