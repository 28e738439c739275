//! Ethernet frames of one device, received through a ring that the kernel fills and timestamps (packet(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use sweetspot_units::Time;

use crate::check;
use crate::sockopt::{self, set};

mod batch;
mod mapping;
mod offload;
mod tap;

use mapping::Mapping;
use offload::VNET_HEADER_BYTES;

pub use batch::{FrameBatch, MAX_BATCH_FRAMES};
pub use offload::{Offload, PartialChecksum, Segmentation, Transport, knows_offload};
pub use tap::PacketTap;

/// A packet socket bound to one device. It receives frames with their arrival times through a TPACKET_V2 ring, and sends
/// without a queueing discipline.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    signal: PacketRing,
    /// Where a super-frame too large for a slot is assembled; `None` on a port without offload.
    large: Option<Box<[u8]>>,
    lost: u64,
}

/// Space for the longest super-frame and the kernel's header for it.
const LARGE_BYTES: usize = VNET_HEADER_BYTES + 14 + 65_535;
/// Kernel memory for super-frames waiting to be read here, or by the receiver of sent frames.
const LARGE_BUFFER_BYTES: i32 = 64 << 20;
/// linux/if_packet.h
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_VNET_HDR: i32 = 15;

/// A received frame in the ring.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// The frame from its Ethernet header on, truncated to the size of a ring slot.
    pub bytes: &'a [u8],
    /// Its full length, in bytes.
    pub length: usize,
    /// When it reached the device, on the clock of [`crate::clock::wall`].
    pub arrived: Time,
    /// Work left to the device by the sender; empty on a port without offload.
    pub offload: Offload,
}

impl PacketPort {
    /// Opens a port on device number `index` of the calling thread's network namespace. It receives incoming frames
    /// only. The ring holds `slots` frames of up to `largest` bytes, rounded up to whole blocks. Needs CAP_NET_RAW.
    pub fn open(index: u32, largest: usize, slots: usize) -> io::Result<PacketPort> {
        PacketPort::open_for(index, largest, slots, true, false)
    }

    /// Like [`PacketPort::open`], for a device with offloads enabled: super-frames, longer than `largest`, are received and
    /// sent whole.
    pub fn open_with_offload(index: u32, largest: usize, slots: usize) -> io::Result<PacketPort> {
        PacketPort::open_for(index, largest, slots, true, true)
    }

    /// Like [`PacketPort::open`], but also receives this host's own packets on the device, like a capture. Frames longer than
    /// `largest` are truncated. Needs CAP_NET_RAW.
    pub fn watch(index: u32, largest: usize, slots: usize) -> io::Result<PacketPort> {
        PacketPort::open_for(index, largest, slots, false, false)
    }

    fn open_for(
        index: u32,
        largest: usize,
        slots: usize,
        only_incoming: bool,
        offload: bool,
    ) -> io::Result<PacketPort> {
        let socket = unbound(SocketType::RAW)?;
        let fd = socket.as_fd();
        set(fd, libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        if only_incoming {
            set(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        set(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        // Makes the kernel take the timestamp when the frame arrives rather than when it is copied into the ring.
        set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Space for a batch; the kernel caps a larger request without an error.
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, 4 << 20)?;
        if offload {
            set(fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
            // Frames larger than a slot are queued at the socket, so slots can be as small as packets.
            set(fd, libc::SOL_PACKET, PACKET_COPY_THRESH, 1)?;
            for room in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
                set(fd, libc::SOL_SOCKET, room, LARGE_BUFFER_BYTES)?;
            }
        }
        let signal = PacketRing::map(fd, largest, slots, offload)?;
        bind(fd, index)?;
        let large = offload.then(|| vec![0; LARGE_BYTES].into_boxed_slice());
        Ok(PacketPort { socket, signal, large, lost: 0 })
    }

    /// Whether super-frames can be sent.
    pub fn offloads(&self) -> bool {
        self.large.is_some()
    }

    /// Passes the next received frame to `work` and returns its slot to the kernel. Returns false if there is none.
    pub fn receive(&mut self, work: impl FnOnce(ReceivedFrame<'_>)) -> bool {
        let (socket, large) = (&self.socket, &mut self.large);
        self.signal.take(|frame, queued| match large {
            Some(large) if queued => {
                let length = receive_queued(socket, large).unwrap_or(0);
                let whole = large.get(VNET_HEADER_BYTES..length);
                work(ReceivedFrame { bytes: whole.unwrap_or(frame.bytes), ..frame });
            }
            _ => work(frame),
        })
    }

    /// The number of frames lost because the ring was full, since the port was opened.
    pub fn lost(&mut self) -> io::Result<u64> {
        self.lost += newly_lost(&self.socket)?;
        Ok(self.lost)
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads the next frame that did not fit into a slot, preceded by its [`VNET_HEADER_BYTES`].
fn receive_queued(socket: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, into, RecvFlags::DONTWAIT)?.1)
}

/// The memory shared with the kernel: slots of equal size, each with its header in front.
#[derive(Debug)]
struct PacketRing {
    memory: Mapping,
    slot: usize,
    slots: usize,
    next: usize,
    /// Whether a header (`struct virtio_net_hdr`) precedes each frame.
    offload: bool,
}

/// Header, address and padding before a frame: TPACKET2_HDRLEN and the alignment after it.
const SLOT_HEADER_BYTES: usize = 128;
/// The ring's block size: a power of two of pages, as the kernel requires, and a multiple of every slot size.
const RING_BLOCK_BYTES: usize = 1 << 18;

impl PacketRing {
    fn map(
        socket: BorrowedFd<'_>,
        largest: usize,
        slots: usize,
        offload: bool,
    ) -> io::Result<PacketRing> {
        // A power of two divides the block, so slot i starts at i x size.
        let slot = (largest + SLOT_HEADER_BYTES).next_power_of_two();
        if slot > RING_BLOCK_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let blocks = slots.div_ceil(RING_BLOCK_BYTES / slot).max(1);
        let slots = blocks * (RING_BLOCK_BYTES / slot);
        let request = libc::tpacket_req {
            tp_block_size: RING_BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: slots as u32,
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let memory = Mapping::new(socket, blocks * RING_BLOCK_BYTES)?;
        Ok(PacketRing { memory, slot, slots, next: 0, offload })
    }

    /// Passes the next frame to `work`, and whether the frame is also queued at the socket because the slot is too small.
    fn take(&mut self, work: impl FnOnce(ReceivedFrame<'_>, bool)) -> bool {
        // A slot begins with its header, which begins with the status word.
        let at = self.next * self.slot;
        let status = self.memory.word(at);
        // Acquire: the frame's bytes are read after the word that says they are ready.
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let head: libc::tpacket2_hdr = self.memory.read(at);
        let start = usize::from(head.tp_mac).min(self.slot);
        let length = (head.tp_snaplen as usize).min(self.slot - start);
        // The offload header right before the frame.
        let vnet_header = start.min(if self.offload { VNET_HEADER_BYTES } else { 0 });
        // SAFETY: the status says that user space owns the slot until it is returned below.
        let bytes = unsafe { self.memory.bytes(at + start - vnet_header, vnet_header + length) };
        let (vnet_header, bytes) = bytes.split_at(vnet_header);
        let nanos = u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec);
        let frame = ReceivedFrame {
            bytes,
            length: head.tp_len as usize,
            arrived: Time::from_nanos(nanos),
            offload: vnet_header
                .first_chunk()
                .copied()
                .map_or(Offload::default(), Offload::from_vnet_header),
        };
        work(frame, state & libc::TP_STATUS_COPY != 0);
        // Release: all reads finish before the kernel may write again.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }
}

/// A packet socket of protocol 0: it receives nothing until its ring is set up and it is bound.
fn unbound(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, kind, flags, None)?)
}

/// Packets dropped since the last call because the ring was full: reading resets the kernel's count. The older ring versions
/// fill in the first two fields only.
fn newly_lost(socket: &OwnedFd) -> io::Result<u64> {
    let mut counts = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    sockopt::get_into(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
    Ok(counts.tp_drops.into())
}

fn bind(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data for which zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for the call and of the size given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(())
}
