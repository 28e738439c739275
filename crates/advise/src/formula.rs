use serde_json::{Value, json};

use crate::text::wrap;

/// A formula with its numbers, as `--explain` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// The name of the quantity computed.
    pub what: &'static str,
    /// The formula in symbols.
    pub rule: &'static str,
    /// The formula with numbers, and its result.
    pub numbers: String,
    /// The paper and equation.
    pub source: &'static str,
}

impl Formula {
    /// As lines of text.
    pub(crate) fn text(&self, width: usize) -> String {
        let head = wrap(&format!("{}: {}   [{}]", self.what, self.rule, self.source), width, 4);
        format!("{head}{}", wrap(&format!("    = {}", self.numbers), width, 6))
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "what": self.what, "rule": self.rule, "numbers": self.numbers, "source": self.source,
        })
    }
}

/// The section that `--explain` adds.
pub(crate) fn explained(formulas: &[Formula], width: usize) -> String {
    let lines: String = formulas.iter().map(|formula| formula.text(width)).collect();
    format!("\nFormulas:\n{lines}")
}
