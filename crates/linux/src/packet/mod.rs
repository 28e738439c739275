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

/// A packet socket bound to one device. It receives frames through a TPACKET_V2 ring, with their arrival times, and
/// sends without a queueing discipline.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    signal: PacketRing,
    /// Where a super-frame is put together that no slot holds; `None`: the port knows no offload.
    large: Option<Box<[u8]>>,
    lost: u64,
}

/// Space for the longest super-frame and the kernel's header for it.
const LARGE_BYTES: usize = VNET_HEADER_BYTES + 14 + 65_535;
/// The kernel memory for super-frames that wait for us to read them, or for the receiver of our frames.
const LARGE_BUFFER_BYTES: i32 = 64 << 20;
/// linux/if_packet.h
const PACKET_COPY_THRESH: i32 = 7;
const PACKET_VNET_HDR: i32 = 15;

/// A received frame in the ring.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// The frame from its Ethernet header on, cut to the size of a ring slot.
    pub bytes: &'a [u8],
    /// Its full length, bytes.
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

    /// Opens a port like [`PacketPort::open`] on a device with offloads on: super-frames, longer than `largest`, are received
    /// and sent whole.
    pub fn open_with_offload(index: u32, largest: usize, slots: usize) -> io::Result<PacketPort> {
        PacketPort::open_for(index, largest, slots, true, true)
    }

    /// Opens a port that also receives this host's own packets on the device, like a capture. Frames longer than `largest` are
    /// cut. Needs CAP_NET_RAW.
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
        // Makes the kernel stamp at the device's door and not when it copies into the ring.
        set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Room for a batch; more than the limit is cut by the kernel, which is no error.
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, 4 << 20)?;
        if offload {
            set(fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
            // Bytes beyond a slot are queued at the socket, so that slots can be as small as packets.
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

    /// The number of frames lost since the port was opened because the ring was full.
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

/// The next of the frames that no slot held, behind its [`VNET_HEADER_BYTES`].
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
    /// Whether each frame is preceded by the work left to the device.
    offload: bool,
}

/// Header, address and padding before a frame: TPACKET2_HDRLEN and the alignment behind it.
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
        // A power of two divides the block, so that slot i simply stands at i x size.
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

    /// Passes the next frame to `work`, and whether it is queued at the socket, too, because the slot is too small.
    fn take(&mut self, work: impl FnOnce(ReceivedFrame<'_>, bool)) -> bool {
        // A slot begins with its header, and this with its status.
        let at = self.next * self.slot;
        let status = self.memory.word(at);
        // Acquire: the frame's bytes are read after the word that says they are there.
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let head: libc::tpacket2_hdr = self.memory.read(at);
        let start = usize::from(head.tp_mac).min(self.slot);
        let length = (head.tp_snaplen as usize).min(self.slot - start);
        // In front of the frame.
        let told = start.min(if self.offload { VNET_HEADER_BYTES } else { 0 });
        // SAFETY: the status says the slot is ours until we give it back below.
        let bytes = unsafe { self.memory.bytes(at + start - told, told + length) };
        let (told, bytes) = bytes.split_at(told);
        let nanos = u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec);
        let frame = ReceivedFrame {
            bytes,
            length: head.tp_len as usize,
            arrived: Time::from_nanos(nanos),
            offload: told
                .first_chunk()
                .copied()
                .map_or(Offload::default(), Offload::from_vnet_header),
        };
        work(frame, state & libc::TP_STATUS_COPY != 0);
        // Release: our reads are over before the kernel may write again.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }
}

/// A packet socket of protocol 0: it receives nothing before its ring stands and it is bound.
fn unbound(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, kind, flags, None)?)
}

/// How many packets a ring had no room for since the last call: reading resets the kernel's count. The older rings answer
/// with the first two fields.
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
