use sweetspot_diagnose::HostBuffer;
use sweetspot_diagnose::live::Side;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::sysctl;
use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, grouped};

/// A note on the buffer that limits a connection, if its program set the buffer size, so that the kernel does not
/// autotune it. Process `pid` has the connection open.
///
/// Also `None` if this cannot be read: before Linux 5.16, or without permission to duplicate the process's descriptors.
pub fn locked_buffer(connection: &DiagConnection, side: Side, pid: u32) -> Option<String> {
    let option = match side {
        Side::Receiver => "SO_RCVBUF",
        Side::Sender => "SO_SNDBUF",
    };
    Some(words(option, set_buffer(connection, side, pid)??))
}

/// The buffer at the end `side` of a connection in this process's namespace; process `pid` has it open.
pub fn host_buffer(
    connection: &DiagConnection,
    side: Side,
    pid: Option<u32>,
) -> Option<HostBuffer> {
    let limits = match side {
        Side::Receiver => sysctl::tcp_rmem(),
        Side::Sender => sysctl::tcp_wmem(),
    };
    let set = pid.and_then(|pid| set_buffer(connection, side, pid));
    Some(HostBuffer { is_set: set.map(|set| set.is_some()), max: limits.ok()?.max })
}

/// The buffer size, if the program set it; the outer `None` if that cannot be read.
fn set_buffer(connection: &DiagConnection, side: Side, pid: u32) -> Option<Option<Bytes>> {
    let socket = LiveSocket::find(pid, connection.inode, connection.cookie)?;
    let read = socket.with(|fd| {
        let locks = options::buffer_locks(fd)?;
        match side {
            Side::Receiver if locks.receive => options::receive_buffer(fd).map(Some),
            Side::Sender if locks.send => options::send_buffer(fd).map(Some),
            Side::Receiver | Side::Sender => Ok(None),
        }
    });
    read.ok()?.ok()
}

/// The kernel doubles the size that a program sets (socket(7)).
fn words(option: &str, buffer: Bytes) -> String {
    let [set, doubled] = [buffer / 2, buffer].map(|size| grouped(size.get()));
    format!(
        "the program set {option} to {set} bytes, which the kernel doubled to {doubled} and does not autotune"
    )
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use sweetspot_linux::diag::Detail;

    use crate::NamespaceConnections;

    use super::*;

    /// A program that sets 212,992 bytes reads back 425,984.
    #[test]
    fn the_remark_names_the_size_requested_by_the_program() {
        let said = words("SO_RCVBUF", Bytes::new(425_984));
        assert!(said.contains("SO_RCVBUF to 212,992 bytes"), "{said}");
    }

    #[test]
    fn only_a_program_set_buffer_draws_a_remark() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        if options::buffer_locks(&near).is_err() {
            return sweetspot_testing::skipped("this kernel has no SO_BUF_LOCK (Linux 5.16)");
        }
        let (inode, cookie) = (sweetspot_linux::live::inode(&near), options::cookie(&near));
        let mut host = NamespaceConnections::own().unwrap();
        let all = host.read(Detail::NONE).unwrap();
        let cookie = cookie.unwrap();
        let connection = all.into_iter().find(|connection| connection.cookie == cookie).unwrap();
        assert_eq!(connection.inode, inode.unwrap());
        let remark = |side| locked_buffer(&connection, side, std::process::id());
        assert_eq!((remark(Side::Receiver), remark(Side::Sender)), (None, None));
        let is_set = || {
            let buffer = host_buffer(&connection, Side::Receiver, Some(std::process::id()));
            buffer.and_then(|buffer| buffer.is_set)
        };
        assert_eq!(is_set(), Some(false));
        options::set_receive_buffer(&near, Bytes::new(100_000)).unwrap();
        assert_eq!(is_set(), Some(true));
        assert!(remark(Side::Receiver).is_some_and(|said| said.contains("to 100,000 bytes")));
        assert_eq!(remark(Side::Sender), None);
    }
}
