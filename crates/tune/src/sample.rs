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

/// The kernel's report of a connection, in the parts that controllers need.
pub struct Seen {
    /// When that was.
    pub at: Time,
    /// The state's number (include/net/tcp_states.h).
    pub state: u8,
    /// The MSS advertised to the peer.
    pub advertised_mss: Bytes,
    /// The smoothed RTT of this end's own segments, if it has one.
    pub rtt: Option<Duration>,
    /// The rate at which the peer received lately.
    pub delivery_rate: Rate,
    /// For the path group.
    pub sample: ConnectionSample,
    /// For the upload: payload that reached the peer, and the sender's report.
    pub delivered: Bytes,
    pub report: SenderReport,
    /// For advice about the send buffer.
    pub buffer: SendBufferSample,
    /// The origin of its congestion control.
    pub congestion: Congestion,
}

impl Seen {
    /// `TCP_INFO` and the length of the receive queue at `at`.
    fn of_info(at: Time, info: &Info, unread: Bytes) -> Seen {
        Seen {
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

    /// A kernel program's report.
    pub fn of_record(record: &Record) -> Seen {
        let on_its_way = (record.packets_out + record.retransmitted_out)
            .saturating_sub(record.sacked_out + record.lost_out);
        Seen {
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
                in_flight: record.mss * on_its_way,
                minimum_rtt: record.minimum_rtt.unwrap_or_default(),
                starved: record.app_limited,
                ..SenderReport::default()
            },
            // How long a send buffer was the limit is not reported: nothing is advised of it.
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

/// Looks at a connection and sets its limit again, if it has one: the kernel overwrites a clamp whenever it grows the
/// buffer (kernel commits 05f76b2d634e, a2cbb1603943).
///
/// A `touched` socket, on which a limit was set, is searched for when its program moves it. Others are not.
///
/// A clamp that the program set itself is noted in `own`, and never loosened.
pub fn sample(
    socket: &LiveSocket,
    limit: Option<Bytes>,
    touched: bool,
    own: &mut OwnClamp,
) -> Result<io::Result<Seen>, BorrowError> {
    let sample = |fd: &OwnedFd| {
        let info = Info::read(fd)?;
        // Also without a limit: a program may set its clamp at any time, and the kernel may overwrite that before a limit comes.
        window::hold(fd, &info, limit, own)?;
        Ok(Seen::of_info(clock::now(), &info, options::unread(fd)?))
    };
    if touched { lend(socket, sample) } else { socket.with(sample) }
}

/// Begins to watch for clamps that its program sets, on a connection that is not limited yet. The kernel has not grown the
/// buffer of one `is_young`, which advertised `mss`.
pub fn own_clamp(socket: &LiveSocket, is_young: bool, mss: Bytes) -> OwnClamp {
    let read = |fd: &OwnedFd| window::begin(fd, &Info::read(fd)?, is_young, mss);
    // Of a connection that is gone there is nothing to note.
    socket.with(read).ok().and_then(Result::ok).unwrap_or_default()
}

/// Notes in `own` the clamp of a connection.
pub fn note_clamp(socket: &LiveSocket, own: &mut OwnClamp) {
    // As above.
    let _ = socket.with(|fd| window::note(fd, &Info::read(fd)?, own));
}

/// Borrows a socket for `act`, wherever its program has moved it.
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

/// Lifts the limit of a connection's window: the program's own clamp is back, also one that it set a moment ago.
pub fn lift(socket: &LiveSocket, mut own: OwnClamp) -> Result<io::Result<()>, BorrowError> {
    lend(socket, |fd| window::lift(fd, &mut own))
}

/// Limits a connection's pace. `None` lifts the limit; pacing stays on, at the kernel's own 1.2 cwnd/RTT.
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
    fn only_what_was_touched_is_followed_when_its_program_moves_it() {
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
