//! Parsers for option values of several verbs.

use sweetspot_comparison::{Variant, VariantError};
use sweetspot_program::values::Offering;
use sweetspot_protocol::MAX_STREAMS;
use sweetspot_sizing::{Sizing, SizingError};
use sweetspot_units::{Duration, UnitError};

/// Parses the sizing of a transfer; its error lists the sizings in the verb's help.
pub fn sizing() -> Offering<Sizing> {
    const WORDS: &[&str] = &["sobas", "sobas:paper", "kernel", "fixed:1MB", "max"];
    const KNOWN: &str = "kernel, fixed:SIZE, max, sobas or sobas:paper";
    Offering::new(WORDS, |word| match read_sizing(word, KNOWN)? {
        Sizing::Bdp | Sizing::BdpBy(_) => Err(format!(
            "{word} needs the path's rate and RTT, which only `send` and `serve` take; expected {KNOWN}"
        )),
        sizing => Ok(sizing),
    })
}

/// The sizings for a verb that may be given the path's rate and RTT.
const OF_PATH: &str = "kernel, fixed:SIZE, max, bdp, sobas or sobas:paper";

/// The same parser, for a verb that may be given the path's rate and RTT.
pub fn sizing_of_path() -> Offering<Sizing> {
    const WORDS: &[&str] = &["sobas", "sobas:paper", "kernel", "fixed:1MB", "bdp", "max"];
    Offering::new(WORDS, |word| read_sizing(word, OF_PATH))
}

fn read_sizing(word: &str, known: &str) -> Result<Sizing, String> {
    word.parse().map_err(|error| wrong_sizing(&error, known))
}

fn wrong_sizing(error: &SizingError, known: &str) -> String {
    match error {
        SizingError::Unknown(word) => format!("unknown sizing {word:?}; expected {known}"),
        error => error.to_string(),
    }
}

/// Parses a variant of the demo, which measures nothing before its transfers.
pub fn variant() -> Offering<Variant> {
    const WORDS: &[&str] = &["kernel+cubic", "kernel+bbr", "bdp", "sobas:paper", "sobas"];
    Offering::new(WORDS, |word| {
        let variant: Variant = word.parse().map_err(|error| match error {
            VariantError::Sizing(error) => wrong_sizing(&error, OF_PATH),
            error => error.to_string(),
        })?;
        match variant.sizing {
            Sizing::BdpBy(definition) if definition.window(None).is_err() => Err(format!(
                "{definition} needs measurements that the demo does not make; expected {OF_PATH}"
            )),
            _ => Ok(variant),
        }
    })
}

/// Parses a duration for which users wait.
pub fn waiting_time(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|error: UnitError| {
        UnitError { examples: "90s, 15min, 24h, 7d", ..error }.to_string()
    })
}

/// Parses a number of connections.
pub fn streams(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=MAX_STREAMS) => Ok(n),
        _ => Err(format!("expected a number from 1 to {MAX_STREAMS}")),
    }
}
