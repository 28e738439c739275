//! Authentication: a request must carry the token and name this server as its host.

use core::fmt;

use subtle::ConstantTimeEq;

/// A secret of 128 bits in the page's address, needed because other users of this machine can connect, too.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new token from the kernel's random numbers.
    pub fn new() -> Result<Token, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        Ok(Token(data_encoding::HEXLOWER.encode(&random)))
    }

    /// The part of `path` after the token and a slash; `None` for another token. Compares in constant time.
    pub fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        bool::from(token.as_bytes().ct_eq(self.0.as_bytes())).then_some(rest)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hides the secret from logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Whether the `Host` field names this port of the loopback address. A foreign page with a name that resolves to this address
/// (DNS rebinding) sends a different host.
pub fn is_own_host(host: &str, port: u16) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, given)) if given == port.to_string() => name,
        _ => return false,
    };
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_complete_token_is_accepted() {
        let token = Token::new().unwrap();
        assert_eq!(token.to_string().len(), 32);
        assert_eq!(token.strip(&format!("/{token}/style.css")), Some("style.css"));
        assert_eq!(token.strip(&format!("/{token}/")), Some(""));
        let text = token.to_string();
        for path in
            ["/", "", "//", "/style.css", &text, &format!("/{text}"), &format!("/{}/", &text[1..])]
        {
            assert_eq!(token.strip(path), None, "{path}");
        }
        assert_ne!(Token::new().unwrap(), token);
    }

    #[test]
    fn foreign_host_names_and_ports_are_rejected() {
        assert!(is_own_host("127.0.0.1:8000", 8000) && is_own_host("localhost:8000", 8000));
        for host in
            ["evil.example:8000", "127.0.0.1", "127.0.0.1:80", "", ":8000", "127.0.0.1.evil:8000"]
        {
            assert!(!is_own_host(host, 8000), "{host}");
        }
    }
}
