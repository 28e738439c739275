use serde_json::{Value, json};

use crate::text::wrap;

/// A formula with its numbers, as `--explain` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// The quantity that it computes.
    pub what: &'static str,
    /// The formula in symbols.
    pub rule: &'static str,
    /// The formula with numbers, and its result.
    pub numbers: String,
    /// Paper and equation.
    pub source: &'static str,
}

impl Formula {
    /// As lines of text.
    pub(crate) fn text(&self) -> String {
        let head = wrap(&format!("{}: {}   [{}]", self.what, self.rule, self.source), 80, 4);
        format!("{head}{}", wrap(&format!("    = {}", self.numbers), 80, 6))
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "what": self.what, "rule": self.rule, "numbers": self.numbers, "source": self.source,
        })
    }
}

/// The section that `--explain` adds.
pub(crate) fn explained(formulas: &[Formula]) -> String {
    let lines: String = formulas.iter().map(Formula::text).collect();
    format!("\nHow:\n{lines}")
}
