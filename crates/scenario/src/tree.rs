//! A scenario in text form: a tree of values with their lines.

use toml::de::{DeTable, DeValue};

use crate::error::{Result, ScenarioError, SourceLocation};

/// A value and its place in the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub origin: SourceLocation,
    pub value: Value,
}

/// The longest key has this many parts: path.hop.0.backward.rate.
const MAX_KEY_PARTS: usize = 5;

/// Longer text is truncated in messages.
const MAX_SHOWN_BYTES: usize = 120;

/// Why a value cannot be set.
enum SetError {
    /// The path does not exist.
    Shape,
    /// The entry is beyond the end of the list, which has this many entries.
    NoEntry(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Number(f64),
    Truth(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn parse(text: &str) -> Result<Node> {
        let lines = LineIndex::of(text);
        let document = DeTable::parse(text).map_err(|error| syntax_error(text, &lines, &error))?;
        let table = grow_table(document.get_ref(), &lines)?;
        Ok(Node { origin: SourceLocation::File, value: table })
    }

    /// Sets the value at a dotted path, in which a number is an index into a list. If a list's
    /// number is missing, all of its entries are set.
    pub(crate) fn set(&mut self, assignment: &str) -> Result<()> {
        let wrong = || ScenarioError::Override(assignment.to_owned());
        let (path, value) = assignment.split_once('=').ok_or_else(wrong)?;
        let path = path.trim();
        let words: Vec<&str> = path.split('.').collect();
        if words.len() > MAX_KEY_PARTS {
            return Err(wrong());
        }
        self.assign(&words, &Value::bare(value.trim())).map_err(|refusal| match refusal {
            SetError::Shape => wrong(),
            SetError::NoEntry(entries) => ScenarioError::NoEntry { key: path.to_owned(), entries },
        })
    }

    fn assign(&mut self, words: &[&str], value: &Value) -> Result<(), SetError> {
        let Some((word, rest)) = words.split_first() else {
            *self = Node { origin: SourceLocation::Override, value: value.clone() };
            return Ok(());
        };
        if let Value::List(entries) = &mut self.value {
            let count = entries.len();
            return match word.parse::<usize>() {
                Ok(index) => {
                    let entry = entries.get_mut(index).ok_or(SetError::NoEntry(count))?;
                    entry.assign(rest, value)
                }
                Err(_) if entries.is_empty() => Err(SetError::NoEntry(0)),
                Err(_) => entries.iter_mut().try_for_each(|entry| entry.assign(words, value)),
            };
        }
        // The list does not exist: its table was created for this assignment.
        if matches!(&self.value, Value::Table(pairs) if pairs.is_empty())
            && word.parse::<usize>().is_ok()
        {
            return Err(SetError::NoEntry(0));
        }
        self.child(word).ok_or(SetError::Shape)?.assign(rest, value)
    }

    /// The value of a key, created if necessary.
    fn child(&mut self, word: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(pairs) if !word.is_empty() => {
                let at = pairs.iter().position(|(key, _)| key == word).unwrap_or_else(|| {
                    let value = Value::Table(Vec::new());
                    pairs.push((word.to_owned(), Node { origin: SourceLocation::Override, value }));
                    pairs.len() - 1
                });
                Some(&mut pairs[at].1)
            }
            _ => None,
        }
    }
}

impl Value {
    /// A value as typed on a command line, on which text needs no quotes.
    fn bare(text: &str) -> Value {
        if let Ok(table) = DeTable::parse(&format!("v = {text}"))
            && let Some(value) = table.get_ref().get("v")
            && let Ok(node) = grow(value.get_ref(), SourceLocation::Override, &LineIndex::of(""))
        {
            return node.value;
        }
        Value::Text(text.to_owned())
    }

    /// The value as written in TOML, for messages.
    pub(crate) fn written(&self) -> String {
        match self {
            Value::Text(text) if text.len() > MAX_SHOWN_BYTES => {
                let shown: String = text.chars().take(MAX_SHOWN_BYTES / 2).collect();
                format!("{shown:?}...")
            }
            Value::Text(text) => format!("\"{text}\""),
            Value::Number(number) => number.to_string(),
            Value::Truth(truth) => truth.to_string(),
            Value::List(entries) => {
                let inner: Vec<String> = entries.iter().map(|e| e.value.written()).collect();
                format!("[{}]", inner.join(", "))
            }
            Value::Table(_) => "{ ... }".to_owned(),
        }
    }
}

/// The TOML parser's error with its line and, for a duplicate key, the key.
fn syntax_error(text: &str, lines: &LineIndex, error: &toml::de::Error) -> ScenarioError {
    let span = error.span().unwrap_or(0..0);
    let origin = SourceLocation::Line(lines.at(span.start));
    let line = text.lines().nth(lines.at(span.start) - 1);
    if let Some((key, "")) =
        line.and_then(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v.trim()))
    {
        let message = format!("{key} has no value; write one after =, or remove the line");
        return ScenarioError::Syntax { origin, message };
    }
    let message = match (error.message(), text.get(span)) {
        ("duplicate key", Some(key)) => format!("{key} is given twice; keep one"),
        (message, _) => {
            format!("{message}; a scenario is a TOML file (man sweetspot-scenario); try @elephants")
        }
    };
    ScenarioError::Syntax { origin, message }
}

/// As [`syntax_error`], for a text without an index of its lines.
pub(crate) fn syntax_error_of(text: &str, error: &toml::de::Error) -> ScenarioError {
    syntax_error(text, &LineIndex::of(text), error)
}

/// The line of the character at `offset` in `text`.
pub(crate) fn line_at(text: &str, offset: usize) -> SourceLocation {
    SourceLocation::Line(LineIndex::of(text).at(offset))
}

/// Turns byte offsets into line numbers.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn of(text: &str) -> LineIndex {
        LineIndex(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

fn grow_table(table: &DeTable<'_>, lines: &LineIndex) -> Result<Value> {
    // In the order of the file, so that messages about several keys have that order, too.
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let pairs = pairs.into_iter().map(|(key, value)| {
        let origin = SourceLocation::Line(lines.at(key.span().start));
        Ok((key.get_ref().to_string(), grow(value.get_ref(), origin, lines)?))
    });
    Ok(Value::Table(pairs.collect::<Result<_>>()?))
}

fn grow(value: &DeValue<'_>, origin: SourceLocation, lines: &LineIndex) -> Result<Node> {
    let number = |text: String, origin: &SourceLocation| {
        text.parse::<f64>().map(Value::Number).map_err(|_| ScenarioError::Syntax {
            origin: origin.clone(),
            message: format!("{text} is not a number"),
        })
    };
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        // Hexadecimal integers are allowed, too.
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map(|whole_number| Value::Number(whole_number as f64))
            .or_else(|_| number(integer.to_string(), &origin))?,
        DeValue::Float(float) => number(float.as_str().replace('_', ""), &origin)?,
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(entries) => Value::List(
            entries
                .iter()
                .map(|entry| {
                    let line = match origin {
                        SourceLocation::Line(_) => {
                            SourceLocation::Line(lines.at(entry.span().start))
                        }
                        ref other => other.clone(),
                    };
                    grow(entry.get_ref(), line, lines)
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => grow_table(table, lines)?,
    };
    Ok(Node { origin, value })
}
