//! All packets of one or all devices, like a capture, in blocks that the kernel fills (packet(7), TPACKET_V3): one wake-up
//! for many packets.

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

/// Bytes kept of each packet: headers and options, tunnels included.
const KEPT_BYTES: u32 = 256;
/// The size of a block and the number of blocks: 64 MB of headers, half a second's worth.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 32;
/// A partly filled block is delivered after this many milliseconds.
const PATIENCE_MS: u32 = 50;
/// ARPHRD_LOOPBACK: every packet both leaves and arrives on it.
const LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;

/// ARPHRD_NONE: packets begin with IP.
const NO_LINK_LAYER: u16 = 0xfffe;
/// The protocols that a tap of all devices passes on, in the form of sockaddr_ll.
const IP: [u16; 2] = [(libc::ETH_P_IP as u16).to_be(), (libc::ETH_P_IPV6 as u16).to_be()];
/// The address of a packet follows its header in the ring (TPACKET_ALIGN).
const ADDRESS_AT: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// A packet socket that sees all packets of one or all devices, in both directions.
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
            // Each packet passes once outgoing and once incoming; the incoming one is enough.
            set(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        Ok(PacketTap { socket, blocks, hardware, lost: 0 })
    }

    /// Taps all devices in the calling thread's network namespace, including those added later. Packets that are not IP are
    /// skipped, and link-layer headers are stripped, so every packet begins with IP. A packet that passes several devices (a
    /// bridge, a router) appears once per device. Needs CAP_NET_RAW.
    pub fn open_all() -> io::Result<PacketTap> {
        const ALL: u32 = 0;
        let (socket, blocks) = prepared(SocketType::DGRAM, true)?;
        bind(socket.as_fd(), ALL)?;
        Ok(PacketTap { socket, blocks, hardware: NO_LINK_LAYER, lost: 0 })
    }

    /// The device's type (ARPHRD_*), which determines the first header of its packets.
    pub fn hardware(&self) -> u16 {
        self.hardware
    }

    /// Waits for packets until the clock of [`clock::now`] reaches `due`, and passes those available to `work`, at most one
    /// ring of them. The first 256 bytes of each are kept.
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

    /// Packets lost because the ring was full, since the tap was opened.
    pub fn lost(&mut self) -> io::Result<u64> {
        self.lost += newly_lost(&self.socket)?;
        Ok(self.lost)
    }
}

/// An unbound socket and its ring; `all` says whether it is for all devices.
fn prepared(kind: SocketType, all: bool) -> io::Result<(OwnedFd, BlockRing)> {
    let socket = unbound(kind)?;
    let version = libc::tpacket_versions::TPACKET_V3 as i32;
    set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
    sockopt::keep_first(&socket, KEPT_BYTES)?;
    let blocks = BlockRing::map(&socket, all)?;
    Ok((socket, blocks))
}

/// Whether a tap of all devices passes this packet on: only IP, and on loopback only incoming packets, because each packet
/// is also seen outgoing there.
fn is_wanted(address: &libc::sockaddr_ll) -> bool {
    let leaves = address.sll_pkttype == libc::PACKET_OUTGOING;
    IP.contains(&address.sll_protocol) && !(leaves && address.sll_hatype == LOOPBACK)
}

/// The type (ARPHRD_*) of the socket's device.
fn hardware(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: sockaddr_ll is plain data for which zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for writing its own size.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &mut size) })?;
    Ok(address.sll_hatype)
}

/// Memory shared with the kernel: blocks, each a header and a chain of packets.
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

    /// The offset of the next block's header, which follows version and offset, four bytes each.
    fn header(&self) -> usize {
        self.next * BLOCK_BYTES + 8
    }

    fn status(&self) -> &AtomicU32 {
        self.memory.word(self.header() + offset_of!(libc::tpacket_hdr_v1, block_status))
    }

    /// Whether user space owns the next block.
    fn is_ready(&self) -> bool {
        // Acquire: the packets are read after the word that says they are ready.
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes the packets of the next block to `work`, if the block is ready, and returns it to the kernel.
    fn take(&mut self, work: &mut dyn FnMut(ReceivedFrame<'_>)) -> bool {
        if !self.is_ready() {
            return false;
        }
        let header: libc::tpacket_hdr_v1 = self.memory.read(self.header());
        let block = self.next * BLOCK_BYTES;
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            // The kernel aligns packets to 16 bytes.
            if at + ADDRESS_AT + size_of::<libc::sockaddr_ll>() > BLOCK_BYTES {
                break;
            }
            let head: libc::tpacket3_hdr = self.memory.read(block + at);
            let start = (at + usize::from(head.tp_mac)).min(BLOCK_BYTES);
            let length = (head.tp_snaplen as usize).min(BLOCK_BYTES - start);
            // SAFETY: the status says that user space owns the block until it is returned below.
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
        // Release: all reads finish before the kernel may write again.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }
}
