//! The five lines at the beginning of every page of results.

use core::fmt::{Display, Formatter, Result};

/// A page's abstract. It displays as a Markdown list with a blank line after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abstract<'a> {
    /// The question that the page answers.
    pub question: &'a str,
    /// The experiment, in a sentence or two.
    pub method: &'a str,
    /// The answer, or the section that has it.
    pub result: &'a str,
    /// A limitation of the result.
    pub limitation: &'a str,
    /// The command that repeats the experiment.
    pub command: &'a str,
}

impl Display for Abstract<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "- **Question**: {}", self.question)?;
        writeln!(f, "- **Method**: {}", self.method)?;
        writeln!(f, "- **Result**: {}", self.result)?;
        writeln!(f, "- **Limitation**: {}", self.limitation)?;
        writeln!(f, "- **Command**: {}\n", self.command)
    }
}
