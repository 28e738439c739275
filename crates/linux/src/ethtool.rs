//! Reads the rings and offloads of a network device, and turns offloads off.

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

const GET_RINGS: u32 = 0x10;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_GRO: u32 = 0x2b;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ethtool_ringparam`.
#[repr(C)]
#[derive(Default)]
struct RingParameters {
    command: u32,
    receive_most: u32,
    receive_mini_most: u32,
    receive_jumbo_most: u32,
    transmit_most: u32,
    receive: u32,
    receive_mini: u32,
    receive_jumbo: u32,
    transmit: u32,
}

/// The sizes of a device's rings, in descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// The receive ring.
    pub receive: u64,
    /// The largest receive ring.
    pub receive_most: u64,
    /// The transmit ring.
    pub transmit: u64,
    /// The largest transmit ring.
    pub transmit_most: u64,
}

/// Which offloads a device uses; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Segmentation by the device.
    pub tso: Option<bool>,
    /// Segmentation just above the device.
    pub gso: Option<bool>,
    /// Merging of received segments.
    pub gro: Option<bool>,
}

/// The rings of `device`. Fails if the driver has none.
pub fn rings(device: &str) -> io::Result<Rings> {
    let mut p = RingParameters { command: GET_RINGS, ..RingParameters::default() };
    // SAFETY: GET_RINGS writes one `struct ethtool_ringparam`, which `RingParameters` is.
    unsafe { command(device, &mut p) }?;
    Ok(Rings {
        receive: p.receive.into(),
        receive_most: p.receive_most.into(),
        transmit: p.transmit.into(),
        transmit_most: p.transmit_most.into(),
    })
}

/// The offloads of `device`.
pub fn offloads(device: &str) -> Offloads {
    let flag = |get: u32| {
        let mut value = EthtoolValue { command: get, data: 0 };
        // SAFETY: these commands write one `struct ethtool_value`, which `EthtoolValue` is.
        unsafe { command(device, &mut value) }.ok().map(|()| value.data != 0)
    };
    Offloads { tso: flag(GET_TSO), gso: flag(GET_GSO), gro: flag(GET_GRO) }
}

/// Turns off checksum, segmentation and receive offloads of `device`, so that every packet is at most MTU long and
/// carries its real checksum. The device is looked up in the calling thread's network namespace.
pub fn turn_offloads_off(device: &str) -> io::Result<()> {
    for set in [SET_TSO, SET_GSO, SET_GRO, SET_TX_CHECKSUM, SET_RX_CHECKSUM, SET_SCATTER_GATHER] {
        let mut value = EthtoolValue { command: set, data: 0 };
        // SAFETY: these commands read one `struct ethtool_value`, which `EthtoolValue` is.
        match unsafe { command(device, &mut value) } {
            Ok(()) => {}
            // The driver cannot switch it, and says so where it has none.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hands `parameters`, which begins with its command, to the driver of `device`.
///
/// # Safety
/// `T` must be the structure that its command reads or writes.
unsafe fn command<T>(device: &str, parameters: &mut T) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: ifreq is plain data for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut *parameters).cast();
    // SAFETY: the request names a device and points at `parameters`, which outlives the call and
    // by this function's contract is what the command wants.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) })?;
    Ok(())
}
