//! Libraries name a fault; this module adds the option that mends it. It finds the option by the fault's text, because a peer
//! sends nothing else.

use std::borrow::Cow;
use std::error::Error;

use sweetspot_advise::AdviceError;

/// Words of a fault, and its option.
const HINTS: [(&str, &str); 14] = [
    (
        "already exists and was left unchanged",
        "start serve with --force to overwrite it, or send under another --name",
    ),
    (
        "begins with a dot may configure programs",
        "allow such names with --dotfiles at the receiver (for a client: rights=dotfiles)",
    ),
    ("send under another name", "--name NAME"),
    ("send it under another name", "--name NAME"),
    ("a name of your choice goes with", "see --name"),
    ("\" is not a valid pattern", "see --exclude"),
    ("standard output takes one file", "--dir DIRECTORY"),
    ("choose another address or port", "--listen ADDR:PORT"),
    ("the ticket has expired", "`serve --lifetime` makes one that lasts longer"),
    ("takes one transfer, which has begun", "serve without --once takes more"),
    ("attributes were left out", "start the receiver with --xattrs"),
    ("give the number of seeds instead", "--seeds N"),
    ("neither JSON nor lines of JSON", "`run --out` and `sweep --out` write such files"),
    ("but no result of sweetspot", "`run --out` and `sweep --out` write such files"),
];

/// `line`, which a library or a peer wrote, with the option that mends its fault.
pub fn with_options(line: &str) -> Cow<'_, str> {
    match HINTS.iter().find(|(words, _)| line.contains(words)) {
        Some((_, option)) if !line.contains(option) => Cow::Owned(format!("{line}; {option}")),
        _ => Cow::Borrowed(line),
    }
}

/// The words of `error`, with options.
pub fn of(error: &(dyn Error + 'static)) -> String {
    let line = error.to_string();
    match error.downcast_ref() {
        // A field of the question is the option of that name.
        Some(AdviceError::Impossible { what, .. }) if !what.contains(' ') => {
            format!("--{}{}", what.replace('_', "-"), &line[what.len()..])
        }
        _ => with_options(&line).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_transfer::TransferError as E;

    use super::*;

    #[test]
    fn a_fault_that_an_option_mends_names_the_option() {
        let path = || "a/b".into();
        let source = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
        for (error, option) in [
            (E::Exists(path()), "--force"),
            (E::InUse(path()), "--name"),
            (E::NotADirectory(path()), "--name"),
            (E::IsDirectory(path()), "--name"),
            (E::Dotfile(path()), "--dotfiles"),
            (E::OneOutput, "--dir"),
            (E::Pattern { pattern: "[".into(), reason: "it is open".into() }, "--exclude"),
            (E::Listen { address: "[::]:1".into(), source: source() }, "--listen"),
            (E::Expired("192.0.2.1:5".into()), "--lifetime"),
            (E::Taken("192.0.2.1:5".into()), "--once"),
        ] {
            let line = of(&error);
            assert!(line.starts_with(&error.to_string()), "{line}");
            assert!(line.contains(option), "{line}");
            assert_eq!(with_options(&line), line, "a hint is given once");
        }
    }

    #[test]
    fn a_field_of_a_question_is_the_option_of_that_name() {
        let error =
            AdviceError::Impossible { what: "input_rate", given: "0 bit/s".into(), why: "no" };
        assert_eq!(of(&error), "--input-rate 0 bit/s is impossible: no");
    }
}
