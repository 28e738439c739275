//! Parses a table key by key and rejects unknown keys.

use core::str::FromStr;

use sweetspot_units::Duration;

use crate::error::{Result, ScenarioError, SourceLocation};
use crate::tree::{Node, Value};
use sweetspot_path::{did_you_mean, is_slip_of, nearest};

/// A table that is being parsed.
pub(crate) struct Reader<'a> {
    name: String,
    origin: SourceLocation,
    pairs: &'a [(String, Node)],
    known: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// A reader for `node`, which must be a table; messages call it `name`.
    pub(crate) fn new(name: impl Into<String>, node: &'a Node) -> Result<Self> {
        let name = name.into();
        match &node.value {
            Value::Table(pairs) => {
                Ok(Reader { name, origin: node.origin.clone(), pairs, known: Vec::new() })
            }
            other => Err(ScenarioError::Value {
                origin: node.origin.clone(),
                key: name,
                given: other.written(),
                reason: "it must be a table".into(),
            }),
        }
    }

    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, node)| node)
    }

    /// The error for an invalid value of `key`.
    pub(crate) fn error(&self, key: &str, node: &Node, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Value {
            origin: node.origin.clone(),
            key: self.full(key),
            given: node.value.written(),
            reason: reason.into(),
        }
    }

    /// The error for a well-formed but impossible value of `key`.
    pub(crate) fn impossible(&mut self, key: &'static str, reason: &str) -> ScenarioError {
        match self.node(key) {
            Some(node) => self.error(key, node, reason),
            None => ScenarioError::Value {
                origin: self.origin.clone(),
                key: self.full(key),
                given: "(default)".into(),
                reason: reason.into(),
            },
        }
    }

    /// The error for an impossible `key` in entry `index` of the tables in `list`.
    pub(crate) fn impossible_in(
        &mut self,
        list: &'static str,
        index: usize,
        key: &'static str,
        reason: &str,
    ) -> ScenarioError {
        match self.tables(list).map(|tables| tables.into_iter().nth(index)) {
            Ok(Some(mut entry)) => entry.impossible(key, reason),
            Ok(None) | Err(_) => self.impossible(list, reason),
        }
    }

    /// Whether the value of `key` is this word.
    pub(crate) fn is_word(&mut self, key: &'static str, word: &str) -> bool {
        self.node(key).is_some_and(|node| matches!(&node.value, Value::Text(text) if text == word))
    }

    pub(crate) fn quantity<T>(&mut self, key: &'static str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: core::fmt::Display,
    {
        let Some(node) = self.node(key) else { return Ok(None) };
        self.parse(key, node).map(Some)
    }

    pub(crate) fn required<T>(&mut self, key: &'static str, example: &'static str) -> Result<T>
    where
        T: FromStr,
        T::Err: core::fmt::Display,
    {
        self.quantity(key)?.ok_or_else(|| self.missing(key, example))
    }

    pub(crate) fn missing(&self, key: &str, example: &str) -> ScenarioError {
        let slip = self.pairs.iter().find(|(k, _)| is_slip_of(k, key));
        let meant = slip.map_or(String::new(), |(k, node)| match node.origin {
            SourceLocation::Line(n) => format!(" (did you mean {k} in line {n}?)"),
            SourceLocation::File | SourceLocation::Override => format!(" (did you mean {k}?)"),
        });
        let (key, example) = match self.name.is_empty() {
            true => (format!("the scenario's {key}"), format!("{example}, above its first table")),
            false => (self.full(key), example.to_owned()),
        };
        ScenarioError::Missing { origin: self.origin.clone(), key, meant, example }
    }

    /// The error that the scenario has no table `key`.
    pub(crate) fn missing_table(&self, key: &str, example: &str) -> ScenarioError {
        let (origin, example) = (self.origin.clone(), example.to_owned());
        let key = format!("the scenario's table [{key}]");
        ScenarioError::Missing { origin, key, meant: String::new(), example }
    }

    /// Parses an integer between bounds.
    pub(crate) fn whole_number(
        &mut self,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match node.value {
            Value::Number(n) if n.fract() == 0.0 && n >= min as f64 && n <= max as f64 => {
                Ok(Some(n as u64))
            }
            _ => {
                let reason = format!("it must be a whole number between {min} and {max}");
                Err(self.error(key, node, reason))
            }
        }
    }

    pub(crate) fn number_above(&mut self, key: &'static str, bound: f64) -> Result<Option<f64>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match node.value {
            Value::Number(n) if n > bound && n.is_finite() => Ok(Some(n)),
            _ => Err(self.error(key, node, format!("it must be a number above {bound}"))),
        }
    }

    /// Parses `true` or `false`.
    pub(crate) fn truth(&mut self, key: &'static str) -> Result<Option<bool>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match node.value {
            Value::Truth(truth) => Ok(Some(truth)),
            _ => Err(self.error(key, node, "it must be true or false")),
        }
    }

    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        if let Value::Text(text) = &node.value
            && let Some((_, choice)) = choices.iter().find(|(word, _)| word == text)
        {
            return Ok(Some(*choice));
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let meant = suggestion(&node.value, &words);
        Err(self.error(key, node, format!("it must be one of {}{meant}", words.join(", "))))
    }

    /// Parses a name, which may have a suffix (`fixed:450pkt`).
    pub(crate) fn name<T>(&mut self, key: &'static str, names: &[&str]) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: core::fmt::Display,
    {
        let Some(node) = self.node(key) else { return Ok(None) };
        self.parse(key, node).map(Some).map_err(|error| match error {
            ScenarioError::Value { origin, key, given, mut reason } => {
                reason += &suggestion(&node.value, names);
                ScenarioError::Value { origin, key, given, reason }
            }
            other => other,
        })
    }

    /// Parses a duration, or two as bounds.
    pub(crate) fn span(&mut self, key: &'static str) -> Result<Option<(Duration, Duration)>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let (low, high) = match &node.value {
            Value::List(ends) if ends.len() == 2 => {
                (self.parse(key, &ends[0])?, self.parse(key, &ends[1])?)
            }
            Value::List(_) => {
                return Err(self.error(key, node, "it must be a duration or [min, max]"));
            }
            _ => {
                let one = self.parse(key, node)?;
                (one, one)
            }
        };
        if low > high {
            return Err(self.error(key, node, "the first must not be above the second"));
        }
        Ok(Some((low, high)))
    }

    /// Parses an integer, or two as bounds.
    pub(crate) fn whole_span(&mut self, key: &'static str) -> Result<Option<(u64, u64)>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let whole_number = |value: &Value| match value {
            Value::Number(n) if n.fract() == 0.0 && (1.0..=1e15).contains(n) => Some(*n as u64),
            _ => None,
        };
        let ends = match &node.value {
            Value::List(ends) if ends.len() == 2 => {
                whole_number(&ends[0].value).zip(whole_number(&ends[1].value))
            }
            one => whole_number(one).map(|n| (n, n)),
        };
        match ends {
            Some((low, high)) if low <= high => Ok(Some((low, high))),
            _ => Err(self.error(key, node, "it must be a whole number or [min, max]")),
        }
    }

    /// The tables of a list, each with a name for messages; empty if the key is absent.
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<Reader<'a>>> {
        let Some(node) = self.node(key) else { return Ok(Vec::new()) };
        match &node.value {
            Value::List(entries) => entries
                .iter()
                .enumerate()
                .map(|(i, entry)| Reader::new(format!("{}.{i}", self.full(key)), entry))
                .collect(),
            Value::Table(_) => Ok(vec![Reader::new(self.full(key), node)?]),
            _ => Err(self.error(key, node, format!("it must be a table: [[{}]]", self.full(key)))),
        }
    }

    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<Reader<'a>>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        Reader::new(self.full(key), node).map(Some)
    }

    /// Fails if the table has a key that was not read.
    pub(crate) fn finish(self) -> Result<()> {
        match self.pairs.iter().find(|(key, _)| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, node)) => Err(ScenarioError::UnknownKey {
                origin: node.origin.clone(),
                key: self.full(key),
                table: if self.name.is_empty() { "a scenario".into() } else { self.name.clone() },
                nearest: nearest(key, self.known.iter().copied())
                    .map_or(String::new(), |near| format!(" (did you mean {}?)", self.full(near))),
                allowed: self.known.join(", "),
            }),
        }
    }

    /// The error for the first unknown key of a table that also has the keys `later`, or `missing` if there is none: of two faults,
    /// the one in a line is easier to find. If a misspelled key explains what is missing, that error has it.
    pub(crate) fn unknown_or(
        mut self,
        missing: ScenarioError,
        later: &[&'static str],
    ) -> ScenarioError {
        if matches!(&missing, ScenarioError::Missing { meant, .. } if meant.is_empty()) {
            self.known.extend(later);
            return self.finish().err().unwrap_or(missing);
        }
        missing
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn parse<T>(&self, key: &str, node: &Node) -> Result<T>
    where
        T: FromStr,
        T::Err: core::fmt::Display,
    {
        match &node.value {
            Value::Text(text) => {
                text.parse().map_err(|e: T::Err| self.error(key, node, e.to_string()))
            }
            // A value without a unit needs no quotes: loss = 0.01.
            Value::Number(number) => number.to_string().parse().map_err(|e: T::Err| {
                let quotes = match node.origin {
                    SourceLocation::Line(_) => ", in quotes",
                    SourceLocation::File | SourceLocation::Override => "",
                };
                self.error(key, node, format!("{e}{quotes}"))
            }),
            _ => Err(self.error(key, node, "it must be a quoted string with a unit")),
        }
    }
}

/// The word that was probably meant, as a question; empty if `given` is one of them or none is
/// similar.
fn suggestion(given: &Value, words: &[&str]) -> String {
    let Value::Text(text) = given else { return String::new() };
    let has_more = |word: &&str| text.split(':').next() == word.split(':').next();
    if words.iter().any(has_more) {
        return String::new();
    }
    did_you_mean(text, words.iter().copied())
}
