use std::fmt;

use serde::{Serialize, Serializer};

use crate::goal::Goal;

/// The rule of a policy that decides about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MatchedRule {
    /// Its place among the rules, from 1.
    pub number: usize,
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its goal; `None` leaves the connection alone.
    #[serde(serialize_with = "as_written")]
    pub goal: Option<Goal>,
}

fn as_written<S: Serializer>(goal: &Option<Goal>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name(*goal))
}

/// A goal as a policy names it.
fn name(goal: Option<Goal>) -> &'static str {
    goal.map_or("leave", Goal::name)
}

impl fmt::Display for MatchedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}, line {}: {}", self.number, self.line, name(self.goal))
    }
}

/// A rule that can never match, because an earlier one matches all of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowedRule {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The line of the earlier rule.
    pub by: usize,
    /// Whether the earlier rule matches every connection.
    pub by_all: bool,
}

impl fmt::Display for ShadowedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShadowedRule { line, by, by_all } = self;
        let what = if *by_all { "everything" } else { "all of its connections" };
        write!(f, "line {line}: never reached: the rule at line {by} matches {what}")
    }
}
