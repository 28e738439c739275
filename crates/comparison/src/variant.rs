use core::fmt;
use core::str::FromStr;

use sweetspot_sizing::{Sizing, SizingError};

/// One way to transfer the file, written `SIZING` or `SIZING+CONGESTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The receiver's sizing.
    pub sizing: Sizing,
    /// The sender's congestion control.
    pub congestion: String,
    /// Whether the sizing may switch the congestion control: true without an explicit choice.
    pub may_switch: bool,
}

/// Every Linux kernel has it, built in or as a module, and most distributions use it by default.
const DEFAULT_CONGESTION: &str = "cubic";

/// The default variants: the kernel's autotuning with CUBIC and with BBR, the textbook's BDP, and
/// SOBAS as published and as implemented here.
pub fn usual() -> Vec<Variant> {
    let one = |sizing, congestion: &str| Variant {
        sizing,
        congestion: congestion.to_owned(),
        may_switch: false,
    };
    vec![
        one(Sizing::Kernel, "cubic"),
        one(Sizing::Kernel, "bbr"),
        one(Sizing::Bdp, "cubic"),
        one(Sizing::SobasPaper, "cubic"),
        one(Sizing::Sobas, "cubic"),
    ]
}

impl FromStr for Variant {
    type Err = VariantError;

    fn from_str(text: &str) -> Result<Variant, VariantError> {
        let named = text.split_once('+');
        let (sizing, congestion) = named.unwrap_or((text, DEFAULT_CONGESTION));
        // The name is passed to the kernel unchanged; TCP_CA_NAME_MAX is 16 with the terminating
        // zero.
        let plausible = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if congestion.is_empty() || congestion.len() > 15 || !congestion.chars().all(plausible) {
            return Err(VariantError::Congestion(congestion.to_owned()));
        }
        let (congestion, may_switch) = (congestion.to_owned(), named.is_none());
        Ok(Variant { sizing: sizing.parse()?, congestion, may_switch })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}+{}", self.sizing, self.congestion))
    }
}

/// The reason why a text is not a variant.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum VariantError {
    /// The part before the plus.
    #[error(transparent)]
    Sizing(#[from] SizingError),
    /// The part after the plus.
    #[error(
        "\"{0}\" is not the name of a congestion control; write it like sobas+cubic or kernel+bbr"
    )]
    Congestion(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_without_congestion_control_uses_cubic() {
        assert_eq!("sobas".parse::<Variant>().map(|c| c.to_string()), Ok("sobas+cubic".into()));
    }

    #[test]
    fn a_printed_variant_parses_back() {
        for variant in usual() {
            assert_eq!(variant.to_string().parse(), Ok(variant));
        }
        let fixed: Variant = "fixed:1.25MB+reno".parse().expect("a fixed window");
        assert_eq!(fixed.to_string(), "fixed:1.25MB+reno");
    }

    #[test]
    fn an_empty_or_malformed_congestion_control_is_rejected() {
        for text in ["sobas+", "sobas+cu bic", "sobas+../x", "sobas+aaaaaaaaaaaaaaaa"] {
            assert!(text.parse::<Variant>().is_err(), "{text}");
        }
    }
}
