use std::io;
use std::os::fd::OwnedFd;

use sweetspot_control::{ConnectionSample, OwnClamp, SendBufferSample};
use sweetspot_kernel::{Congestion, Record};
use sweetspot_linux::clock;
use sweetspot_linux::live::{BorrowError, LiveSocket};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_sizing::SenderReport;
use sweetspot_socket::{readings, window};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The kernel's report of a connection: the fields that controllers need.
pub struct KernelReport {
    /// The time of the report.
    pub at: Time,
    /// The TCP state's number (include/net/tcp_states.h).
    pub state: u8,
    /// The MSS advertised to the peer.
    pub advertised_mss: Bytes,
    /// The smoothed RTT of this end's own segments, if it has one.
    pub rtt: Option<Duration>,
    /// The delivery rate: how fast the peer received lately.
    pub delivery_rate: Rate,
    /// The input of the path group.
    pub sample: ConnectionSample,
    /// The input of the upload's controller: payload delivered to the peer, and the sender's report.
    pub delivered: Bytes,
    pub report: SenderReport,
    /// The input of the advice about send buffers.
    pub buffer: SendBufferSample,
    /// The origin of its congestion control.
    pub congestion: Congestion,
}

impl KernelReport {
    /// The report from `TCP_INFO` and the length of the receive queue, read at `at`.
    fn of_info(at: Time, info: &Info, unread: Bytes) -> KernelReport {
        KernelReport {
            at,
            state: info.state,
            advertised_mss: info.advmss,
            rtt: info.rtt.nonzero(),
            delivery_rate: info.delivery_rate,
            sample: readings::download(info, unread),
            delivered: readings::delivered(info),
            report: readings::sender_report(info),
            buffer: readings::send_buffer(info),
            congestion: Congestion::OfHost,
        }
    }

    /// The report from a BPF program's record.
    pub fn of_record(record: &Record) -> KernelReport {
        let on_its_way = (record.packets_out + record.retransmitted_out)
            .saturating_sub(record.sacked_out + record.lost_out);
        KernelReport {
            at: record.time,
            state: record.state,
            advertised_mss: record.advertised_mss,
            rtt: record.smoothed_rtt,
            delivery_rate: record.delivery_rate,
            sample: ConnectionSample {
                received: record.received,
                unread: record.unread,
                rtt: record.receiver_rtt,
                minimum_rtt: record.minimum_rtt,
                out_of_order: record.out_of_order,
                advertised: Some(record.advertised),
            },
            delivered: record.mss * record.delivered,
            report: SenderReport {
                // The record has no total. A rise is a loss here, too.
                retransmitted: record.retransmitted_out,
                in_flight: record.mss * on_its_way,
                minimum_rtt: record.minimum_rtt.unwrap_or_default(),
                starved: record.app_limited,
                ..SenderReport::default()
            },
            // The record lacks the time in which the send buffer was the limit, so it yields no advice.
            buffer: SendBufferSample {
                acked: record.acked,
                delivery_rate: record.delivery_rate,
                app_limited: record.app_limited,
                sndbuf_limited: Duration::ZERO,
                busy: Duration::ZERO,
                minimum_rtt: record.minimum_rtt,
            },
            congestion: record.congestion,
        }
    }
}

/// Samples a connection and sets its limit again, if it has one: the kernel overwrites a clamp whenever it grows the buffer
/// (kernel commits 05f76b2d634e, a2cbb1603943).
///
/// A socket that was limited (`touched`) is followed if its program moves it; other sockets are not.
///
/// A clamp that the program itself set is noted in `own`, and never loosened.
pub fn sample(
    socket: &LiveSocket,
    limit: Option<Bytes>,
    touched: bool,
    own: &mut OwnClamp,
) -> Result<io::Result<KernelReport>, BorrowError> {
    let sample = |fd: &OwnedFd| {
        let info = Info::read(fd)?;
        // Even without a limit: a program may set its clamp at any time, and the kernel may overwrite it before the first
        // limit.
        window::hold(fd, &info, limit, own)?;
        Ok(KernelReport::of_info(clock::now(), &info, options::unread(fd)?))
    };
    if touched { lend(socket, sample) } else { socket.with(sample) }
}

/// Starts to watch for clamps that the program itself sets, on a connection not limited yet. If it `is_young`, the kernel has
/// not grown its buffer yet. `mss` is the advertised MSS.
pub fn own_clamp(socket: &LiveSocket, is_young: bool, mss: Bytes) -> OwnClamp {
    let read = |fd: &OwnedFd| window::begin(fd, &Info::read(fd)?, is_young, mss);
    // If the connection is gone, there is nothing to note.
    socket.with(read).ok().and_then(Result::ok).unwrap_or_default()
}

/// Notes the current clamp of a connection in `own`.
pub fn note_clamp(socket: &LiveSocket, own: &mut OwnClamp) {
    // If the connection is gone, there is nothing to note.
    let _ = socket.with(|fd| window::note(fd, &Info::read(fd)?, own));
}

/// Borrows a socket for `act`, even if its program has moved it.
fn lend<T>(socket: &LiveSocket, mut act: impl FnMut(&OwnedFd) -> T) -> Result<T, BorrowError> {
    match socket.with(&mut act) {
        Err(error) if error.is_over() => {
            socket.follow()?;
            socket.with(act)
        }
        other => other,
    }
}

/// Sets the clamp that `own` has planned for `limit`.
pub fn limit(
    socket: &LiveSocket,
    limit: Option<Bytes>,
    own: &mut OwnClamp,
) -> Result<io::Result<()>, BorrowError> {
    lend(socket, |fd| window::set(fd, limit, own))
}

/// Lifts a connection's window limit and restores the program's own clamp, even one that it has just set.
pub fn lift(socket: &LiveSocket, mut own: OwnClamp) -> Result<io::Result<()>, BorrowError> {
    lend(socket, |fd| window::lift(fd, &mut own))
}

/// Limits a connection's pacing rate. `None` lifts the limit; pacing itself stays on, at the kernel's default of 1.2 cwnd/RTT.
pub fn pace(socket: &LiveSocket, rate: Option<Rate>) -> Result<io::Result<()>, BorrowError> {
    lend(socket, |fd| options::set_max_pacing_rate(fd, rate))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use sweetspot_linux::live::{ProcessHandle, inode};

    use super::*;

    #[test]
    fn only_a_tuned_socket_is_followed_to_another_descriptor() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let process = ProcessHandle::open(std::process::id()).unwrap();
        let inode = inode(&stream).unwrap();
        let socket = LiveSocket::name(&process, stream.as_raw_fd(), inode, None).unwrap();
        let moved = stream.try_clone().unwrap();
        drop(stream);
        let mut own = OwnClamp::default();
        assert!(sample(&socket, None, false, &mut own).is_err_and(|error| error.is_over()));
        assert!(sample(&socket, None, true, &mut own).is_ok());
        assert_eq!(socket.fd(), moved.as_raw_fd());
    }
}
