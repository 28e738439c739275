//! Addresses as ss prints them.

use std::net::SocketAddr;

/// Ports that ss prints by name without `-n`, from IANA's registry as in /etc/services.
const SERVICES: [(&str, u16); 34] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("imap2", 143),
    ("imap", 143),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submission", 587),
    ("ldaps", 636),
    ("rsync", 873),
    ("imaps", 993),
    ("pop3s", 995),
    ("ms-sql-s", 1433),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("x11", 6000),
    ("redis", 6379),
    ("http-alt", 8080),
    ("https-alt", 8443),
    ("mongodb", 27017),
];

/// An address as ss prints it, possibly with a device name after a percent sign, and with a service name
/// as port.
pub fn end(word: &str) -> Option<SocketAddr> {
    let (address, port) = word.rsplit_once(':')?;
    let (address, device) = address.split_once('%').unwrap_or((address, ""));
    let bracket = if device.ends_with(']') { "]" } else { "" };
    let named = SERVICES.iter().find(|(name, _)| *name == port).map(|(_, port)| port.to_string());
    let is_name = port.starts_with(|c: char| c.is_ascii_lowercase());
    // The port of any other service is unknown: 0.
    let port = named.as_deref().unwrap_or(if is_name { "0" } else { port });
    let address = format!("{address}{bracket}");
    // Older versions print IPv6 addresses without brackets.
    let bare = || format!("[{address}]:{port}").parse().ok();
    format!("{address}:{port}").parse().ok().or_else(bare)
}
