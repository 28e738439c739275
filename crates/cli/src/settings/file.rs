//! The configuration file: a table per verb, a key per option.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Command;
use sweetspot_path::did_you_mean;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{COMMON, options, verbs};
use sweetspot_program::print::{Shown, system};

/// The names of a verb, and the long name of an option.
type Key = (Vec<String>, String);

#[derive(Debug, Default)]
pub struct ConfigFile {
    /// The values of each option, and their position in the file.
    set: BTreeMap<Key, (Vec<String>, String)>,
}

impl ConfigFile {
    /// Reads `path`, in which tables have the names of verbs of `program`.
    pub fn read(path: &Path, program: &Command) -> Result<ConfigFile, String> {
        let name = path.shown();
        let text = std::fs::read_to_string(path)
            .map_err(|error| system(&error))
            .map_err(|error| format!("{name}: {error}; name another with SWEETSPOT_CONFIG"))?;
        let table = DeTable::parse(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(&text, span.start));
            format!("{name}: line {line}: {}", error.message())
        })?;
        let mut reader = Reader { text: &text, name: name.to_string(), set: BTreeMap::new() };
        reader.table(table.get_ref(), program, &mut Vec::new())?;
        Ok(ConfigFile { set: reader.set })
    }

    /// The values of an option in the file, set for this verb or else for all verbs.
    pub fn of(&self, verb: &[String], long: &str) -> Option<(Vec<String>, String)> {
        let own = self.set.get(&(verb.to_vec(), long.to_owned()));
        let common = || self.set.get(&(Vec::new(), long.to_owned()));
        own.or_else(common).cloned()
    }
}

struct Reader<'a> {
    text: &'a str,
    name: String,
    set: BTreeMap<Key, (Vec<String>, String)>,
}

impl Reader<'_> {
    fn table(
        &mut self,
        table: &DeTable<'_>,
        command: &Command,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let verb = verbs(command).find(|verb| verb.get_name() == name);
            if let (Some(verb), DeValue::Table(inner)) = (verb, value.get_ref()) {
                path.push(name.to_owned());
                self.table(inner, verb, path)?;
                path.pop();
                continue;
            }
            if !known(command, path).any(|known| known == name) {
                return Err(self.unknown(key, command, path));
            }
            let place = self.place(key);
            let values = values(value.get_ref())
                .ok_or_else(|| format!("{place}: {name} takes a string, a number or true"))?;
            self.set.insert((path.clone(), name.to_owned()), (values, place));
        }
        Ok(())
    }

    fn place<T>(&self, spanned: &Spanned<T>) -> String {
        format!("{}: line {}", self.name, line_of(self.text, spanned.span().start))
    }

    fn unknown(&self, key: &Spanned<DeString<'_>>, command: &Command, path: &[String]) -> String {
        let word: &str = key.get_ref();
        let candidates = known(command, path).chain(verbs(command).map(Command::get_name));
        let meant = did_you_mean(word, candidates);
        let (whose, help) = match path {
            [] => ("sweetspot has no verb".to_owned(), "sweetspot --help".to_owned()),
            path => {
                let verb = path.join(" ");
                (format!("{verb} has no option"), format!("sweetspot {verb} --help"))
            }
        };
        format!("{}: {whose} {word}{meant}; see {help}", self.place(key))
    }
}

/// The keys allowed in a verb's table; at the top level, the keys that all verbs share.
fn known<'c>(command: &'c Command, path: &[String]) -> impl Iterator<Item = &'c str> {
    let common = path.is_empty().then_some(COMMON).into_iter().flatten();
    common.chain(options(command).filter_map(|option| option.get_long()))
}

fn values(value: &DeValue<'_>) -> Option<Vec<String>> {
    Some(match value {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => vec![number.to_string()],
        DeValue::Float(number) => vec![number.to_string()],
        DeValue::Boolean(yes) => vec![yes.to_string()],
        DeValue::Array(all) => {
            let each: Option<Vec<_>> = all.iter().map(|value| values(value.get_ref())).collect();
            each?.concat()
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
