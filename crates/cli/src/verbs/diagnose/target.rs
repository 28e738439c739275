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
        typed.parse().map(Target::End).map_err(|_| {
            "it is neither a process number nor ADDRESS:PORT, e.g. 4711, 192.0.2.7:443 or \
             [2001:db8::7]:443"
                .to_owned()
        })
    }
}
