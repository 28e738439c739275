//! Readers of option values that several verbs take.

use sweetspot_program::values::Offering;
use sweetspot_protocol::MAX_STREAMS;
use sweetspot_sizing::{Sizing, SizingError};
use sweetspot_units::{Duration, UnitError};

/// A window sizing of a transfer; its error lists those in the help of the verb.
pub fn sizing() -> Offering<Sizing> {
    const WORDS: &[&str] = &["sobas", "sobas:paper", "kernel", "fixed:1MB", "max"];
    Offering::new(WORDS, |word| read_sizing(word, "kernel, fixed:SIZE, max, sobas or sobas:paper"))
}

/// The same for a verb that may be given the path.
pub fn sizing_of_path() -> Offering<Sizing> {
    const WORDS: &[&str] = &["sobas", "sobas:paper", "kernel", "fixed:1MB", "bdp", "max"];
    const KNOWN: &str = "kernel, fixed:SIZE, max, bdp, sobas or sobas:paper";
    Offering::new(WORDS, |word| read_sizing(word, KNOWN))
}

fn read_sizing(word: &str, known: &str) -> Result<Sizing, String> {
    word.parse().map_err(|error| match error {
        SizingError::Unknown(_) => format!("unknown sizing {word:?}; expected {known}"),
        error => error.to_string(),
    })
}

/// A duration in which people wait.
pub fn waiting_time(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|error: UnitError| {
        UnitError { examples: "90s, 15min, 24h, 7d", ..error }.to_string()
    })
}

/// A number of connections.
pub fn streams(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=MAX_STREAMS) => Ok(n),
        _ => Err(format!("expected a number from 1 to {MAX_STREAMS}")),
    }
}
