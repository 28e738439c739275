use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::ticket::TicketHost;

/// The port on which `sweetspot serve` listens.
pub const DEFAULT_PORT: u16 = 7411;
/// The longest code, bytes.
const MAX_CODE_BYTES: usize = 80;
/// The minimum number of words in a code. Three of 2048 words are 33 bits, and each wrong attempt excludes one value.
const MIN_WORDS: usize = 3;

/// A short secret that people tell each other: a number, which identifies the code, and words, as in
/// `42-crisp-lemon-orbit`. Upper case, blanks and underscores make no difference. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SpokenCode {
    number: u32,
    text: String,
}

/// A code and the address of its listener: `HOST/CODE` or `HOST:PORT/CODE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAddress {
    /// The host.
    pub host: TicketHost,
    /// The port, of TCP and UDP.
    pub port: u16,
    /// The code.
    pub code: SpokenCode,
}

/// Why a text is not a code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CodeError {
    /// The code itself is invalid.
    #[error("this is not a code: codes look like 42-crisp-lemon-orbit")]
    Code,
    /// The host before the code is missing or invalid.
    #[error(
        "write the host before the code: example.org/42-crisp-lemon-orbit, or example.org:9000/42-..."
    )]
    Address,
}

impl SpokenCode {
    /// The code of this number and these words.
    pub fn new(number: u32, words: &[&str]) -> Result<SpokenCode, CodeError> {
        format!("{number}-{}", words.join("-")).parse()
    }

    /// The code's number, which is not secret.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The whole text, from which both ends derive keys.
    pub fn password(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for SpokenCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpokenCode({}-..)", self.number)
    }
}

impl FromStr for SpokenCode {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<SpokenCode, CodeError> {
        if text.len() > MAX_CODE_BYTES {
            return Err(CodeError::Code);
        }
        let lower = text.to_ascii_lowercase();
        let parts: Vec<&str> = lower
            .split(|c: char| c == '-' || c == '_' || c.is_whitespace())
            .filter(|part| !part.is_empty())
            .collect();
        let [number, words @ ..] = &parts[..] else { return Err(CodeError::Code) };
        let spelled = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase());
        if words.len() < MIN_WORDS || !words.iter().all(spelled) {
            return Err(CodeError::Code);
        }
        let number = number.parse().map_err(|_| CodeError::Code)?;
        Ok(SpokenCode { number, text: format!("{number}-{}", words.join("-")) })
    }
}

impl FromStr for CodeAddress {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<CodeAddress, CodeError> {
        let (address, code) = text.trim().split_once('/').ok_or(CodeError::Address)?;
        let code = code.parse()?;
        if let Some(host) = TicketHost::parse(address) {
            return Ok(CodeAddress { host, port: DEFAULT_PORT, code });
        }
        let (host, port) = address.rsplit_once(':').ok_or(CodeError::Address)?;
        let host = TicketHost::parse(host).ok_or(CodeError::Address)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(CodeError::Address)?;
        Ok(CodeAddress { host, port, code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_separators_of_a_code_do_not_matter() {
        let code: SpokenCode = "42-crisp-lemon-orbit".parse().unwrap();
        for typed in ["42 Crisp LEMON orbit", " 42_crisp-lemon--orbit ", "042-crisp-lemon-orbit"] {
            assert_eq!(typed.parse(), Ok(code.clone()), "{typed}");
        }
        assert_eq!((code.number(), code.password()), (42, "42-crisp-lemon-orbit"));
        assert_eq!(format!("{code:?}"), "SpokenCode(42-..)");
    }

    #[test]
    fn malformed_codes_are_rejected() {
        for wrong in [
            "",
            "42",
            "42-crisp",
            "42-crisp-lemon",
            "crisp-lemon-orbit",
            "42-cr1sp-lemon-orbit",
            &"7-a".repeat(99),
        ] {
            assert_eq!(wrong.parse::<SpokenCode>(), Err(CodeError::Code), "{wrong}");
        }
    }

    #[test]
    fn a_code_address_begins_with_its_host() {
        let address =
            |text: &str| text.parse::<CodeAddress>().map(|a| (a.host.to_string(), a.port));
        assert_eq!(address("example.org/7-a-b-c"), Ok(("example.org".into(), DEFAULT_PORT)));
        assert_eq!(address("192.0.2.1:9/7-a-b-c"), Ok(("192.0.2.1".into(), 9)));
        assert_eq!(address("[2001:db8::1]:9/7-a-b-c"), Ok(("[2001:db8::1]".into(), 9)));
        assert_eq!(address("2001:db8::1/7-a-b-c"), Ok(("[2001:db8::1]".into(), DEFAULT_PORT)));
        for wrong in ["7-a-b-c", "/7-a-b-c", "a b/7-a-b-c", "h:0/7-a-b-c", "h:x/7-a-b-c"] {
            assert_eq!(address(wrong), Err(CodeError::Address), "{wrong}");
        }
    }
}
