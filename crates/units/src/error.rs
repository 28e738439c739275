use thiserror::Error;

/// Why a text is not a quantity of the expected kind. The message names the text, the reason and examples.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{given}\" is not a {quantity}: {reason}; write it like {examples}")]
pub struct UnitError {
    /// The expected quantity, e.g. "rate".
    pub quantity: &'static str,
    /// The text.
    pub given: String,
    /// The fault.
    pub reason: String,
    /// Examples of valid texts.
    pub examples: &'static str,
}
