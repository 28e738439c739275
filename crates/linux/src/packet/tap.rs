//! All packets of a device, or of all devices, as a capture has them, in blocks that the kernel fills (packet(7),
//! TPACKET_V3): one wake-up for many packets.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::SocketType;
use sweetspot_units::Time;

use super::mapping::Mapping;
use super::{Offload, ReceivedFrame, bind, newly_lost, unbound};
use crate::event_fd::wait_readable;
use crate::route::RouteNetlink;
use crate::sockopt::{self, set};
use crate::{check, clock};

/// A packet's first bytes are kept: headers and options through tunnels.
const KEPT_BYTES: u32 = 256;
/// A block, and how many there are: half a second of 64 MB of headers.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 32;
/// A partly filled block is delivered after this many milliseconds.
const PATIENCE_MS: u32 = 50;
/// ARPHRD_LOOPBACK: every packet leaves and arrives on it at once.
const LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;

/// ARPHRD_NONE: packets begin with IP.
const NO_LINK_LAYER: u16 = 0xfffe;
/// The protocols that a tap of all devices passes on, as sockaddr_ll has them.
const IP: [u16; 2] = [(libc::ETH_P_IP as u16).to_be(), (libc::ETH_P_IPV6 as u16).to_be()];
/// The address of a packet stands behind its header in the ring (TPACKET_ALIGN).
const ADDRESS_AT: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// A packet socket that sees all of one device, or of all devices, in both directions. Dropping it closes it.
#[derive(Debug)]
pub struct PacketTap {
    socket: OwnedFd,
    blocks: BlockRing,
    hardware: u16,
    lost: u64,
}

impl PacketTap {
    /// Taps the device called `name` in the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn open(name: &str) -> io::Result<PacketTap> {
        let index = RouteNetlink::new()?.index_of(name)?;
        let (socket, blocks) = prepared(SocketType::RAW, false)?;
        let fd = socket.as_fd();
        bind(fd, index)?;
        let hardware = hardware(&socket)?;
        if hardware == LOOPBACK {
            // Each packet passes once on its way out and once on its way in.
            set(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        Ok(PacketTap { socket, blocks, hardware, lost: 0 })
    }

    /// Taps all devices in the calling thread's network namespace, those that come later, too. Packets that are not
    /// IP are left out, and so are link layers: the rest begins with IP. A packet that passes several devices
    /// (a bridge, a router) comes once from each. Needs CAP_NET_RAW.
    pub fn open_all() -> io::Result<PacketTap> {
        const ALL: u32 = 0;
        let (socket, blocks) = prepared(SocketType::DGRAM, true)?;
        bind(socket.as_fd(), ALL)?;
        Ok(PacketTap { socket, blocks, hardware: NO_LINK_LAYER, lost: 0 })
    }

    /// The device's kind (ARPHRD_*), which gives its packets' first header.
    pub fn hardware(&self) -> u16 {
        self.hardware
    }

    /// Waits until `due` on the clock of [`clock::now`] for packets and passes those that are
    /// there to `work`, at most a ring of them. Of each, 256 bytes are kept.
    pub fn receive(
        &mut self,
        due: Time,
        work: &mut dyn FnMut(ReceivedFrame<'_>),
    ) -> io::Result<()> {
        if !self.blocks.is_ready() {
            wait_readable(&[self.socket.as_fd()], due)?;
        }
        for _ in 0..BLOCKS {
            if !self.blocks.take(work) || clock::now() >= due {
                break;
            }
        }
        Ok(())
    }

    /// How many packets were lost since it was opened because the ring was full.
    pub fn lost(&mut self) -> io::Result<u64> {
        self.lost += newly_lost(&self.socket)?;
        Ok(self.lost)
    }
}

/// A socket with its ring that is bound to nothing yet; `all` says whether it is to be bound to all devices.
fn prepared(kind: SocketType, all: bool) -> io::Result<(OwnedFd, BlockRing)> {
    let socket = unbound(kind)?;
    let version = libc::tpacket_versions::TPACKET_V3 as i32;
    set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
    sockopt::keep_first(&socket, KEPT_BYTES)?;
    let blocks = BlockRing::map(&socket, all)?;
    Ok((socket, blocks))
}

/// Whether to pass on a packet of all devices: only IP, and on loopback only incoming packets, because each packet also goes
/// out there.
fn is_wanted(address: &libc::sockaddr_ll) -> bool {
    let leaves = address.sll_pkttype == libc::PACKET_OUTGOING;
    IP.contains(&address.sll_protocol) && !(leaves && address.sll_hatype == LOOPBACK)
}

/// The type of the socket's device.
fn hardware(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: sockaddr_ll is plain data for which zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for writing its own size.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &mut size) })?;
    Ok(address.sll_hatype)
}

/// The memory shared with the kernel: blocks, each a header and a chain of packets.
#[derive(Debug)]
struct BlockRing {
    memory: Mapping,
    next: usize,
    all: bool,
}

impl BlockRing {
    fn map(socket: &OwnedFd, all: bool) -> io::Result<BlockRing> {
        const FRAME_BYTES: usize = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (BLOCK_BYTES / FRAME_BYTES * BLOCKS) as u32,
            tp_retire_blk_tov: PATIENCE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let memory = Mapping::new(socket.as_fd(), BLOCK_BYTES * BLOCKS)?;
        Ok(BlockRing { memory, next: 0, all })
    }

    /// Where the header of the next block stands: behind version and offset, of four bytes each.
    fn header(&self) -> usize {
        self.next * BLOCK_BYTES + 8
    }

    fn status(&self) -> &AtomicU32 {
        self.memory.word(self.header() + offset_of!(libc::tpacket_hdr_v1, block_status))
    }

    /// Whether the next block is ours to read.
    fn is_ready(&self) -> bool {
        // Acquire: the packets are read after the word that says they are there.
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes the packets of the next block to `work`, if it is full, and gives it back.
    fn take(&mut self, work: &mut dyn FnMut(ReceivedFrame<'_>)) -> bool {
        if !self.is_ready() {
            return false;
        }
        let header: libc::tpacket_hdr_v1 = self.memory.read(self.header());
        let block = self.next * BLOCK_BYTES;
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            // The kernel aligns packets to 16.
            if at + ADDRESS_AT + size_of::<libc::sockaddr_ll>() > BLOCK_BYTES {
                break;
            }
            let head: libc::tpacket3_hdr = self.memory.read(block + at);
            let start = (at + usize::from(head.tp_mac)).min(BLOCK_BYTES);
            let length = (head.tp_snaplen as usize).min(BLOCK_BYTES - start);
            // SAFETY: the status says that the block is ours until we give it back below.
            let bytes = unsafe { self.memory.bytes(block + start, length) };
            let nanos = u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec);
            let arrived = Time::from_nanos(nanos);
            let address: libc::sockaddr_ll = self.memory.read(block + at + ADDRESS_AT);
            if !self.all || is_wanted(&address) {
                let (length, offload) = (head.tp_len as usize, Offload::default());
                work(ReceivedFrame { bytes, length, arrived, offload });
            }
            at += head.tp_next_offset as usize;
        }
        // Release: our reads are over before the kernel may write again.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }
}
