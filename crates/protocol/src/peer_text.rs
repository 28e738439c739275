use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::printable::{MAX_SHOWN, write_bytes};

/// Text that the peer sent: a name, a reason, the name of a congestion control.
///
/// `Display` escapes everything that could control a terminal, forge a log line or hide text, and truncates after 300
/// characters. Use [`PeerText::raw`] for comparing, parsing and file names. On the wire it is a plain string.
///
/// ```
/// use sweetspot_protocol::PeerText;
/// let name = PeerText::from("a\x1b[2J\nb");
/// assert_eq!(name.to_string(), r"a\u001b[2J\nb");
/// assert_eq!(name.raw(), "a\x1b[2J\nb");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerText(String);

impl PeerText {
    /// The unmodified text. Never print it.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Parses the text as a value.
    pub fn parse<T: FromStr>(&self) -> Result<T, T::Err> {
        self.0.parse()
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(self.0.as_bytes(), MAX_SHOWN, f)
    }
}

impl fmt::Debug for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> PeerText {
        PeerText(text)
    }
}

impl From<&str> for PeerText {
    fn from(text: &str) -> PeerText {
        PeerText(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_printable;
    use proptest::prelude::*;

    /// A new field of type `String` could reach a terminal unescaped.
    #[test]
    fn no_message_or_record_has_a_string_field() {
        for source in [
            include_str!("message.rs"),
            include_str!("record.rs"),
            include_str!("measure_message.rs"),
        ] {
            let code = source.split("#[cfg(test)]").next().unwrap();
            assert!(!code.contains("String"), "use PeerText for what a peer sends");
        }
    }

    proptest! {
        #[test]
        fn peer_text_cannot_control_the_terminal(text in any::<String>()) {
            let peer = PeerText::from(text.clone());
            let shown = [peer.to_string(), format!("{:?}", peer)].concat();
            prop_assert!(shown.chars().all(is_printable));
            let (sent, plain) = (serde_json::to_string(&peer), serde_json::to_string(&text));
            prop_assert_eq!(sent.unwrap(), plain.unwrap());
        }
    }
}
