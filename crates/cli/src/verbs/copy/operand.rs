use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A source or a destination, in scp's and rsync's notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    Local(PathBuf),
    /// A path on a host reached through ssh: `host:path` or `user@host:path`.
    Remote {
        /// The destination for ssh: `user@host`.
        host: String,
        /// The path on that host, relative to the user's home.
        path: PathBuf,
    },
}

/// Prefixes of URLs, which name a protocol instead of a host.
const SCHEMES: [&str; 6] = ["sftp://", "ssh://", "scp://", "rsync://", "http://", "https://"];

impl Operand {
    /// Parses an operand. A colon before the first slash makes it remote.
    ///
    /// An IPv6 address needs brackets: `[2001:db8::7]:path`.
    pub fn parse(text: &OsStr) -> Result<Operand, String> {
        let bytes = text.as_bytes();
        let shown = || text.to_string_lossy().into_owned();
        if let Some(scheme) = SCHEMES.iter().find(|scheme| bytes.starts_with(scheme.as_bytes())) {
            let rest = shown()[scheme.len()..].replacen('/', ":", 1);
            let colon = if rest.contains(':') { "" } else { ":" };
            return Err(format!(
                "{}: expected HOST:PATH, as for scp, and not a URL: {rest}{colon}",
                shown()
            ));
        }
        let (host, rest) = match bytes.iter().position(|byte| *byte == b'[') {
            Some(open) if bytes[..open].ends_with(b"@") || open == 0 => {
                let close = bytes.windows(2).position(|pair| pair == b"]:");
                let Some(close) = close else {
                    return Ok(Operand::Local(text.into()));
                };
                let host = [&bytes[..open], &bytes[open + 1..close]].concat();
                (host, &bytes[close + 2..])
            }
            _ => {
                let end = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
                match end {
                    Some(colon) if bytes[colon] == b':' => {
                        (bytes[..colon].to_vec(), &bytes[colon + 1..])
                    }
                    _ => return Ok(Operand::Local(text.into())),
                }
            }
        };
        let host = String::from_utf8(host)
            .map_err(|_| format!("{}: expected a host name before the colon", shown()))?;
        if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
            return Err(format!(
                "{}: expected HOST:PATH; write a local name with a colon as ./{}",
                shown(),
                shown()
            ));
        }
        let path = match rest {
            b"" | b"~" | b"~/" => PathBuf::from("."),
            [b'~', b'/', below @ ..] => PathBuf::from(OsString::from_vec(below.to_vec())),
            // A file named `-`: only this end can read standard input.
            b"-" => PathBuf::from("./-"),
            path => PathBuf::from(OsStr::from_bytes(path)),
        };
        Ok(Operand::Remote { host, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(host: &str, path: &str) -> Result<Operand, String> {
        Ok(Operand::Remote { host: host.into(), path: path.into() })
    }

    #[test]
    fn operands_parse_as_in_scp_and_rsync() {
        let parse = |text: &str| Operand::parse(text.as_ref());
        for local in ["a", "./a:b", "/a:b", "dir/a:b", ".", "-", "a b", "[x"] {
            assert_eq!(parse(local), Ok(Operand::Local(local.into())), "{local}");
        }
        assert_eq!(parse("host:"), remote("host", "."));
        assert_eq!(parse("host:path/x/"), remote("host", "path/x/"));
        assert_eq!(parse("me@host:/a:b"), remote("me@host", "/a:b"));
        assert_eq!(parse("host:~/x"), remote("host", "x"));
        assert_eq!(parse("host:-"), remote("host", "./-"));
        assert_eq!(parse("[2001:db8::7]:x"), remote("2001:db8::7", "x"));
        assert_eq!(parse("me@[2001:db8::7]:x"), remote("me@2001:db8::7", "x"));
    }

    #[test]
    fn the_error_for_a_url_suggests_the_operand() {
        for (url, meant) in [
            ("sftp://host", "host:"),
            ("sftp://me@host/dir/f", "me@host:dir/f"),
            ("ssh://host/", "host:"),
        ] {
            let wrong = Operand::parse(url.as_ref()).unwrap_err();
            assert!(wrong.starts_with(&format!("{url}: expected HOST:PATH")), "{wrong}");
            assert!(wrong.ends_with(&format!(": {meant}")), "{wrong}");
        }
        // An absolute path may begin with two slashes.
        assert_eq!(Operand::parse("sftp:/x".as_ref()), remote("sftp", "/x"));
    }

    #[test]
    fn a_host_that_ssh_would_read_as_an_option_is_rejected() {
        for wrong in ["-oProxyCommand=x:y", ":x", "a b:x"] {
            assert!(Operand::parse(wrong.as_ref()).is_err(), "{wrong}");
        }
    }
}
