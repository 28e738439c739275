//! Offloads of a network device, off.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::check;

// linux/ethtool.h. The old one-flag commands: every kernel has them and they need no strings.
const SET_RX_CHECKSUM: u32 = 0x15;
const SET_TX_CHECKSUM: u32 = 0x17;
const SET_SCATTER_GATHER: u32 = 0x19;
const SET_TSO: u32 = 0x1f;
const SET_GSO: u32 = 0x24;
const SET_GRO: u32 = 0x2c;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Turns off checksum, segmentation and receive offloads of `device` in the calling thread's
/// network namespace, so that every packet crosses it in MTU size with its real checksum.
pub fn turn_offloads_off(device: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    for command in [SET_TSO, SET_GSO, SET_GRO, SET_TX_CHECKSUM, SET_RX_CHECKSUM, SET_SCATTER_GATHER]
    {
        let mut value = Value { command, data: 0 };
        // SAFETY: ifreq is plain data for which zeros are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if device.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names a device and points at a `Value` that outlives the call,
        // which is what these commands read.
        match check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) }) {
            Ok(_) => {}
            // The driver cannot switch it, and says so where it has none.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
