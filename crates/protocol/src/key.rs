use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};
use thiserror::Error;

use crate::ticket::{CHECK_BYTES, check};

/// A public identity: BLAKE3 of a certificate (DER). The peer proves that it holds the private key. The text form is
/// `sweetspot-key1:` and base32, with four bytes against typing errors. It is not secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "this is not a key: keys begin with \"{PREFIX}\"; copy the whole word that `sweetspot serve key` printed"
)]
pub struct KeyError;

pub(crate) const PREFIX: &str = "sweetspot-key1:";

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&self.0[..], &check(&self.0)[..]].concat();
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        let body = text.strip_prefix(PREFIX).ok_or(KeyError)?;
        let bytes = BASE32_NOPAD_NOCASE.decode(body.as_bytes()).map_err(|_| KeyError)?;
        let (content, given) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(KeyError)?;
        let content: [u8; 32] = content.try_into().map_err(|_| KeyError)?;
        if *given == check(&content) { Ok(PublicKey(content)) } else { Err(KeyError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_printed_key_parses_back(key: [u8; 32]) {
            prop_assert_eq!(PublicKey(key).to_string().parse(), Ok(PublicKey(key)));
        }

        #[test]
        fn a_wrong_character_is_detected(key: [u8; 32], at in 0usize..58, with in "[a-z2-7]") {
            let text = PublicKey(key).to_string();
            let at = PREFIX.len() + at % (text.len() - PREFIX.len());
            let wrong = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            prop_assume!(wrong != text);
            prop_assert_eq!(wrong.parse::<PublicKey>(), Err(KeyError));
        }
    }
}
