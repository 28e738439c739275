//! Reads the rings and offloads of a network device, and sets its offloads.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::check;

// linux/ethtool.h. The old single-flag commands: every kernel supports them and they need no strings.
const SET_RX_CHECKSUM: u32 = 0x15;
const SET_TX_CHECKSUM: u32 = 0x17;
const SET_SCATTER_GATHER: u32 = 0x19;
const SET_TSO: u32 = 0x1f;
const SET_GSO: u32 = 0x24;
const SET_GRO: u32 = 0x2c;

const GET_RINGS: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_SIZES: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// ETH_SS_FEATURES: the string set with the names of the features.
const FEATURE_NAMES: u32 = 4;
/// ETH_GSTRING_LEN
const NAME_BYTES: usize = 32;
/// A generous limit on features (kernels have about 64), and the number of 32-bit words that hold one bit each.
const MAX_FEATURES: usize = 256;
const MAX_FEATURE_WORDS: usize = MAX_FEATURES / 32;
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
    receive_max: u32,
    receive_mini_max: u32,
    receive_jumbo_max: u32,
    transmit_max: u32,
    receive: u32,
    receive_mini: u32,
    receive_jumbo: u32,
    transmit: u32,
}

/// `struct ethtool_sset_info` for one set.
#[repr(C)]
struct SetSizes {
    command: u32,
    reserved: u32,
    mask: u64,
    size: u32,
}

/// `struct ethtool_gstrings`.
#[repr(C)]
struct Names {
    command: u32,
    set: u32,
    count: u32,
    names: [[u8; NAME_BYTES]; MAX_FEATURES],
}

/// `struct ethtool_get_features_block`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Features {
    available: u32,
    requested: u32,
    active: u32,
    never_changed: u32,
}

/// `struct ethtool_gfeatures`.
#[repr(C)]
struct GetFeatures {
    command: u32,
    words: u32,
    features: [Features; MAX_FEATURE_WORDS],
}

/// `struct ethtool_set_features_block`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Choice {
    valid: u32,
    requested: u32,
}

/// `struct ethtool_sfeatures`.
#[repr(C)]
struct SetFeatures {
    command: u32,
    words: u32,
    choices: [Choice; MAX_FEATURE_WORDS],
}

/// The sizes of a device's rings, in descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// The receive ring.
    pub receive: u64,
    /// The largest receive ring.
    pub receive_max: u64,
    /// The transmit ring.
    pub transmit: u64,
    /// The largest transmit ring.
    pub transmit_max: u64,
}

/// The offloads that a device uses; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Segmentation by the device (TCP segmentation offload).
    pub tso: Option<bool>,
    /// Segmentation just above the device (generic segmentation offload).
    pub gso: Option<bool>,
    /// Merging of received segments (generic receive offload).
    pub gro: Option<bool>,
}

/// The rings of `device`. Fails if the driver has none.
pub fn rings(device: &str) -> io::Result<Rings> {
    let mut p = RingParameters { command: GET_RINGS, ..RingParameters::default() };
    // SAFETY: GET_RINGS writes one `struct ethtool_ringparam`, which `RingParameters` is.
    unsafe { command(device, &mut p) }?;
    Ok(Rings {
        receive: p.receive.into(),
        receive_max: p.receive_max.into(),
        transmit: p.transmit.into(),
        transmit_max: p.transmit_max.into(),
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

/// Turns off checksum, segmentation and receive offloads of `device`, so that every packet is at most one MTU long and carries
/// its real checksum. Looks the device up in the calling thread's network namespace.
pub fn turn_offloads_off(device: &str) -> io::Result<()> {
    for set in [SET_TSO, SET_GSO, SET_GRO, SET_TX_CHECKSUM, SET_RX_CHECKSUM, SET_SCATTER_GATHER] {
        let mut value = EthtoolValue { command: set, data: 0 };
        // SAFETY: these commands read one `struct ethtool_value`, which `EthtoolValue` is.
        match unsafe { command(device, &mut value) } {
            Ok(()) => {}
            // The driver cannot switch this offload; drivers without it return the same error.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Turns on the offloads and other features of `device` named in `kept` (`ethtool --show-features`), and turns off all others
/// that can be turned off. Looks the device up in the calling thread's network namespace.
pub fn keep_only(device: &str, kept: &[&str]) -> io::Result<()> {
    let names = feature_names(device)?;
    let now = features(device)?;
    let mut chosen =
        SetFeatures { command: SET_FEATURES, words: now.words, choices: Default::default() };
    for (choice, features) in chosen.choices.iter_mut().zip(&now.features) {
        choice.valid = features.available & !features.never_changed;
    }
    for (bit, _) in names.iter().enumerate().filter(|(_, name)| kept.contains(&name.as_str())) {
        chosen.choices[bit / 32].requested |= 1 << (bit % 32);
    }
    // SAFETY: SET_FEATURES reads a `struct ethtool_sfeatures` with as many words as the kernel reported.
    unsafe { command(device, &mut chosen) }
}

/// Whether `device` accepts buffers of UDP datagrams that it splits itself (`tx-udp-segmentation`).
pub(crate) fn takes_unsplit_datagrams(device: &str) -> io::Result<bool> {
    let features = features(device)?.features;
    let bit = feature_names(device)?.iter().position(|name| name == "tx-udp-segmentation");
    Ok(bit.is_some_and(|bit| features[bit / 32].active & 1 << (bit % 32) != 0))
}

fn features(device: &str) -> io::Result<GetFeatures> {
    let mut now = GetFeatures {
        command: GET_FEATURES,
        words: MAX_FEATURE_WORDS as u32,
        features: Default::default(),
    };
    // SAFETY: GET_FEATURES writes a `struct ethtool_gfeatures` of at most the given number of words.
    unsafe { command(device, &mut now) }?;
    Ok(now)
}

/// The names of the features of `device`, indexed by feature number.
fn feature_names(device: &str) -> io::Result<Vec<String>> {
    let mut sizes =
        SetSizes { command: GET_SET_SIZES, reserved: 0, mask: 1 << FEATURE_NAMES, size: 0 };
    // SAFETY: GET_SET_SIZES writes a `struct ethtool_sset_info` with a number for each bit of its mask.
    unsafe { command(device, &mut sizes) }?;
    if sizes.size as usize > MAX_FEATURES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut names = Names {
        command: GET_STRINGS,
        set: FEATURE_NAMES,
        count: 0,
        names: [[0; NAME_BYTES]; MAX_FEATURES],
    };
    // SAFETY: GET_STRINGS writes a `struct ethtool_gstrings` with as many names as were just counted, and the buffer has space
    // for them.
    unsafe { command(device, &mut names) }?;
    let name = |bytes: &[u8; NAME_BYTES]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(names.names.iter().take(sizes.size as usize).map(name).collect())
}

/// Passes `parameters`, which begins with its command, to the driver of `device`.
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
    // SAFETY: the request names a device and points at `parameters`, which outlives the call and, by this function's contract,
    // matches the command.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_names_include_the_offloads() {
        let names = feature_names("lo").unwrap();
        for name in ["tx-scatter-gather", "tx-checksum-ip-generic", "tx-tcp-segmentation"] {
            assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
        }
    }
}
