use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use crate::policy::MatchedRule;

/// A connection and the process that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionOwner {
    /// The process ID; 0 if the process is unknown.
    pub pid: u32,
    /// The process's name; `?` if the process is unknown.
    pub program: String,
    /// The local address.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
    /// The socket's cookie (`SO_COOKIE`).
    pub cookie: u64,
    /// The rule of the policy that decides about it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<MatchedRule>,
}

impl fmt::Display for ConnectionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectionOwner { pid, program, remote, .. } = self;
        match pid {
            0 => write!(f, "unknown process {remote}"),
            _ => write!(f, "{program}[{pid}] {remote}"),
        }
    }
}

#[cfg(test)]
impl ConnectionOwner {
    /// A connection of `program`, process 7, to port `port`.
    pub(crate) fn example(program: &str, port: u16, cookie: u64) -> ConnectionOwner {
        ConnectionOwner {
            pid: 7,
            program: program.to_owned(),
            local: ([192, 0, 2, 1], 50_000).into(),
            remote: ([192, 0, 2, 2], port).into(),
            cookie,
            rule: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_process_has_no_number() {
        let mut owner = ConnectionOwner::example("curl", 443, 9);
        assert_eq!(owner.to_string(), "curl[7] 192.0.2.2:443");
        (owner.pid, owner.program) = (0, "?".to_owned());
        assert_eq!(owner.to_string(), "unknown process 192.0.2.2:443");
    }
}
