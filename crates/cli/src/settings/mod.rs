//! The user's defaults for any option of any verb, from environment variables or the configuration
//! file. The command line overrides variables, and variables override the file.

mod file;

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

use crate::own_files::config_directory;
use file::ConfigFile;
use sweetspot_program::usage_error::in_one_line;

/// The variable that names the configuration file; if empty, no file is read.
pub const CONFIG_VARIABLE: &str = "SWEETSPOT_CONFIG";

/// Options that a variable or the file may set for all verbs at once.
pub const COMMON: [&str; 2] = ["json", "quiet"];

struct Default {
    /// The names of the verb, such as `["advise", "window"]`.
    verb: Vec<String>,
    /// Clap's name for the option.
    id: String,
    /// The values as typed; several for options that can be repeated.
    values: Vec<String>,
}

/// `program` with the user's defaults instead of its own.
///
/// # Errors
/// If the file cannot be read, has an unknown key, or a value is invalid. The error names the file
/// and line, or the variable.
pub fn with_defaults(program: Command) -> Result<Command, String> {
    let file = match config_path() {
        Some(path) => ConfigFile::read(&path, &program)?,
        None => ConfigFile::default(),
    };
    let mut defaults = Vec::new();
    collect(&program, &mut Vec::new(), &file, &mut defaults)?;
    Ok(defaults.into_iter().fold(program, |program, default| set(program, &default.verb, &default)))
}

/// The path of the configuration file, if there is one.
fn config_path() -> Option<PathBuf> {
    match std::env::var_os(CONFIG_VARIABLE) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => config_directory()
            .ok()
            .map(|path| path.join("config.toml"))
            .filter(|path| path.exists()),
    }
}

/// The options of a verb that can be set: those with a long name, except help and version.
fn options(verb: &Command) -> impl Iterator<Item = &Arg> {
    verb.get_arguments().filter(|option| {
        let help = matches!(
            option.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        option.get_long().is_some() && !help
    })
}

/// The public verbs of `command`.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn collect(
    command: &Command,
    path: &mut Vec<String>,
    file: &ConfigFile,
    defaults: &mut Vec<Default>,
) -> Result<(), String> {
    for option in options(command) {
        let Some(long) = option.get_long() else { continue };
        let Some((values, source)) = from_environment(path, long).or_else(|| file.of(path, long))
        else {
            continue;
        };
        let values: Vec<String> =
            values.into_iter().map(|value| as_option(option, value)).collect();
        check(command, long, &values, option).map_err(|why| format!("{source}: {why}"))?;
        let id = option.get_id().to_string();
        defaults.push(Default { verb: path.clone(), id, values });
    }
    for verb in verbs(command) {
        path.push(verb.get_name().to_owned());
        collect(verb, path, file, defaults)?;
        path.pop();
    }
    Ok(())
}

/// The variable for an option, such as `SWEETSPOT_ADVISE_WINDOW_RATE`.
pub fn variable(verb: &[String], long: &str) -> String {
    let words = verb.iter().map(String::as_str).chain([long]);
    let words: Vec<String> = words.map(|word| word.replace('-', "_").to_uppercase()).collect();
    format!("SWEETSPOT_{}", words.join("_"))
}

fn from_environment(verb: &[String], long: &str) -> Option<(Vec<String>, String)> {
    let common = COMMON.contains(&long).then(|| variable(&[], long));
    [Some(variable(verb, long)), common].into_iter().flatten().find_map(|name| {
        let value = std::env::var(&name).ok().filter(|value| !value.is_empty())?;
        Some((vec![value], name))
    })
}

/// In the environment, flags are often 1 and 0.
fn as_option(option: &Arg, value: String) -> String {
    match (option.get_action(), value.as_str()) {
        (ArgAction::SetTrue | ArgAction::SetFalse, "1") => "true".to_owned(),
        (ArgAction::SetTrue | ArgAction::SetFalse, "0") => "false".to_owned(),
        _ => value,
    }
}

/// Clap's error for these values, as if typed without the verb's other arguments.
fn check(command: &Command, long: &str, values: &[String], option: &Arg) -> Result<(), String> {
    let flag = !option.get_action().takes_values();
    for value in values {
        if flag && !matches!(value.as_str(), "true" | "false") {
            return Err(format!("--{long} is a flag; {value:?} is neither true nor false"));
        }
        if flag {
            continue;
        }
        let typed = ["sweetspot".to_owned(), format!("--{long}={value}")];
        let answer = command.clone().try_get_matches_from(typed);
        if let Err(error) = answer
            && matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation)
        {
            return Err(in_one_line(&error.render().to_string()));
        }
    }
    Ok(())
}

fn set(command: Command, verb: &[String], default: &Default) -> Command {
    match verb.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |verb| set(verb, rest, default)),
        None => command.mut_arg(&default.id, |option| {
            let option = option.required(false);
            option.default_values(default.values.clone())
        }),
    }
}
