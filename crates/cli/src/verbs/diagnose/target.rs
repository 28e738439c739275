use std::net::SocketAddr;
use std::str::FromStr;

/// Which live connections are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// All of a process.
    Process(u32),
    /// All that end there, on this host or the other.
    End(SocketAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(typed: &str) -> Result<Target, String> {
        if let Ok(pid) = typed.parse() {
            return Ok(Target::Process(pid));
        }
        // The kernel's table has IPv4 addresses mapped into IPv6 as IPv4 ones, too.
        let end = |typed: SocketAddr| SocketAddr::new(typed.ip().to_canonical(), typed.port());
        typed.parse().map(|typed| Target::End(end(typed))).map_err(|_| {
            "it is neither a process number nor ADDRESS:PORT, e.g. 4711, 192.0.2.7:443 or \
             [2001:db8::7]:443"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_same_however_it_is_written() {
        let plain: Target = "192.0.2.7:443".parse().unwrap();
        assert_eq!("[::ffff:192.0.2.7]:443".parse(), Ok(plain));
    }
}
