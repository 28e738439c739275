use sweetspot_diagnose::WindowClamp;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_socket::window;
use sweetspot_tune::held_window;

/// The clamp on a connection's advertised window, unless the kernel set it itself. Process `pid` has the connection open.
///
/// Also `None` if the clamp cannot be read, for lack of permission to duplicate the process's descriptors, or if the kernel may
/// have set it.
pub fn window_clamp(connection: &DiagConnection, pid: Option<u32>) -> Option<WindowClamp> {
    let (inode, cookie) = (connection.inode, connection.cookie);
    let held = held_window(inode, cookie);
    let socket = pid.and_then(|pid| LiveSocket::find(pid, inode, cookie));
    let read = socket.and_then(|socket| {
        let read = socket.with(|fd| {
            let info = Info::read(fd)?;
            let own = window::begin(fd, &info, false, info.advmss)?;
            std::io::Result::Ok((options::window_clamp(fd)?, own, options::receive_buffer(fd)?))
        });
        read.ok()?.ok()
    });
    let Some((size, own, buffer)) = read else {
        return held.map(|size| WindowClamp { size, is_of_tuner: true });
    };
    // A tuner may have changed it between the two readings.
    if held == Some(size) || held_window(inode, cookie) == Some(size) {
        return Some(WindowClamp { size, is_of_tuner: true });
    }
    let size = own.of_program().filter(|size| *size < buffer)?;
    Some(WindowClamp { size, is_of_tuner: false })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use sweetspot_linux::diag::Detail;
    use sweetspot_units::Bytes;

    use crate::NamespaceConnections;

    use super::*;

    /// 16,001 is below a quarter of the first buffer, 131,072, and not a multiple of its 256th part.
    #[test]
    fn a_program_clamp_is_detected_and_a_kernel_clamp_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _far = listener.accept().unwrap();
        let cookie = options::cookie(&near).unwrap();
        let mut host = NamespaceConnections::own().unwrap();
        let all = host.read(Detail::NONE).unwrap();
        let connection = all.into_iter().find(|connection| connection.cookie == cookie).unwrap();
        let seen = || window_clamp(&connection, Some(std::process::id()));
        assert_eq!(seen(), None);
        options::set_window_clamp(&near, Bytes::new(16_001)).unwrap();
        let clamp = WindowClamp { size: Bytes::new(16_001), is_of_tuner: false };
        assert_eq!(seen(), Some(clamp));
        assert_eq!(window_clamp(&connection, None), None);
    }
}
