//! The limit of one socket's window. It never exceeds a clamp that the program set itself, and restores that clamp at
//! the end.

use std::io;
use std::os::fd::AsFd;

use sweetspot_control::{BufferState, OwnClamp};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::Bytes;

/// Starts to watch for the program's own clamps, on a connection without a limit. If it `is_young`, the kernel has not
/// grown the buffer yet; it advertised the MSS `mss`. `info` must be fresh.
pub fn begin(fd: impl AsFd, info: &Info, is_young: bool, mss: Bytes) -> io::Result<OwnClamp> {
    let mut own = OwnClamp::new(is_young, options::receive_buffer(fd.as_fd())?, mss);
    note(fd, info, &mut own)?;
    Ok(own)
}

/// Notes the connection's clamp and returns it. `info` must be fresh.
pub fn note(fd: impl AsFd, info: &Info, own: &mut OwnClamp) -> io::Result<Bytes> {
    let fd = fd.as_fd();
    let before = buffer_state(fd, info)?;
    let clamp = options::window_clamp(fd)?;
    let after = if own.is_set(clamp) { before } else { buffer_state(fd, &Info::read(fd)?)? };
    own.handle_clamp(clamp, before, after);
    Ok(clamp)
}

/// Notes the connection's clamp, and sets its `limit` again if it has one: the kernel overwrites a clamp whenever it
/// grows the buffer (kernel commits 05f76b2d634e, a2cbb1603943). `info` must be fresh.
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

/// Lifts the limit, and restores the program's own clamp, even one that it has just set.
pub fn lift(fd: impl AsFd, own: &mut OwnClamp) -> io::Result<()> {
    let fd = fd.as_fd();
    note(fd, &Info::read(fd)?, own)?;
    own.plan(None);
    set(fd, None, own)
}

fn buffer_state(fd: impl AsFd, info: &Info) -> io::Result<BufferState> {
    Ok(BufferState { size: options::receive_buffer(fd)?, largest_segment: info.rcv_mss })
}
