use sweetspot_diagnose::live::Side;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::tcp::options;
use sweetspot_socket::Autotuning;
use sweetspot_units::{Bytes, Duration, grouped};

/// A remark on the buffer that bounds a connection, if its program set the buffer itself, so that the kernel does not
/// autotune it. Process `pid` has the connection open.
///
/// `None` also where nothing can be seen: before Linux 5.16, or without the right to duplicate the process's descriptors.
pub fn locked_buffer(
    connection: &DiagConnection,
    side: Side,
    rtt: Option<Duration>,
    pid: u32,
) -> Option<String> {
    let socket = LiveSocket::find(pid, connection.inode, connection.cookie)?;
    let (option, buffer) = socket
        .with(|fd| {
            let locks = options::buffer_locks(fd).ok()?;
            match side {
                Side::Receiver if locks.receive => {
                    Some(("SO_RCVBUF", options::receive_buffer(fd).ok()?))
                }
                Side::Sender if locks.send => Some(("SO_SNDBUF", options::send_buffer(fd).ok()?)),
                Side::Receiver | Side::Sender => None,
            }
        })
        .ok()??;
    Some(words(option, buffer, rtt))
}

fn words(option: &str, buffer: Bytes, rtt: Option<Duration>) -> String {
    let set = format!(
        "the program set {option} to {} bytes, so the kernel does not autotune it",
        grouped(buffer.get())
    );
    match rtt.and_then(|rtt| Some((Autotuning::Off { buffer }.max_rate(rtt)?, rtt))) {
        Some((rate, rtt)) => format!("{set}: at most {rate} at {rtt}"),
        None => set,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use sweetspot_linux::diag::Detail;

    use crate::NamespaceConnections;

    use super::*;

    /// Half of 425,984 B in 100 ms is 17.04 Mbit/s.
    #[test]
    fn a_remark_names_the_option_its_size_and_the_rate_that_it_allows() {
        let said = words("SO_RCVBUF", Bytes::new(425_984), Some(Duration::from_millis(100)));
        assert!(said.contains("SO_RCVBUF to 425,984 bytes"), "{said}");
        assert!(said.ends_with("at most 17.04 Mbit/s at 100 ms"), "{said}");
        assert!(!words("SO_SNDBUF", Bytes::new(4096), None).contains("at most"));
    }

    #[test]
    fn only_a_buffer_that_the_program_set_is_remarked_on() {
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
        let remark = |side| locked_buffer(&connection, side, None, std::process::id());
        assert_eq!((remark(Side::Receiver), remark(Side::Sender)), (None, None));
        options::set_receive_buffer(&near, Bytes::new(100_000)).unwrap();
        assert!(remark(Side::Receiver).is_some_and(|said| said.contains("SO_RCVBUF")));
        assert_eq!(remark(Side::Sender), None);
    }
}
