use thiserror::Error;

/// Why a text is not the quantity it should be. The message names the text, the reason and an
/// example of what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{given}\" is not a {quantity}: {reason}; write it like {examples}")]
pub struct UnitError {
    /// What was asked for, e.g. "rate".
    pub quantity: &'static str,
    /// The text as it was given.
    pub given: String,
    /// What is wrong with it.
    pub reason: String,
    /// Examples of what is allowed.
    pub examples: &'static str,
}
