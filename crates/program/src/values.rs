//! Option values that completions suggest, for options that also accept other values.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use sweetspot_report::Theme;

/// Parses a `T`, and suggests `words`.
#[derive(Debug, Clone)]
pub struct Offering<T> {
    words: &'static [&'static str],
    read: fn(&str) -> Result<T, String>,
}

impl<T> Offering<T> {
    /// Suggests `words`; `read` may accept others.
    pub fn new(words: &'static [&'static str], read: fn(&str) -> Result<T, String>) -> Offering<T> {
        Offering { words, read }
    }
}

/// Suggests those `words` that can be parsed.
pub fn words<T: FromStr<Err: ToString>>(words: &'static [&'static str]) -> Offering<T> {
    Offering::new(words, |word| word.parse().map_err(|error: T::Err| error.to_string()))
}

/// A congestion control that some kernel has.
pub fn congestion() -> Offering<String> {
    Offering { words: &["cubic", "bbr", "reno"], read: |word| Ok(word.to_owned()) }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offering<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let read = self.read;
        let parser = StringValueParser::new().try_map(move |word| read(&word));
        parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(PossibleValue::new)))
    }
}

/// The themes by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ThemeName {
    /// Light or dark, as the reader's system is set
    Screen,
    /// White
    Print,
}

impl From<ThemeName> for Theme {
    fn from(name: ThemeName) -> Theme {
        match name {
            ThemeName::Screen => Theme::Screen,
            ThemeName::Print => Theme::Print,
        }
    }
}
