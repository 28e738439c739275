//! Adds to the errors of libraries the option that fixes them. It finds the option by the error's text, because a peer sends only
//! text.

use std::borrow::Cow;
use std::error::Error;

use sweetspot_advise::AdviceError;

/// The verb that prints a hint; the hint names no options of other verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintVerb {
    /// `copy`
    Copy,
    /// `send` with a ticket
    Send,
    /// `send --offer`
    Offer,
    /// `receive`
    Receive,
    /// `serve --dir` and `serve --stdout`
    Serve,
    /// `serve --clients`
    Service,
    /// `measure`
    Measure,
    /// Any other verb
    Other,
}

use HintVerb as A;

/// The verbs that move files.
const FILE_VERBS: &[HintVerb] = &[A::Copy, A::Send, A::Offer, A::Receive, A::Serve, A::Service];

/// Words of an error, the hint, and the verbs that it applies to. A hint that starts with the first of these words replaces them;
/// other hints follow the line.
type Hint = (&'static str, &'static str, &'static [HintVerb]);

const HINTS: &[Hint] = &[
    (
        "already exists and was left unchanged",
        "start serve with --force to overwrite it (for a client: rights=overwrite), or send under another --name",
        &[A::Send],
    ),
    (
        "already exists and was left unchanged",
        "start serve with --force to overwrite it, or send it with another `send --name`",
        &[A::Serve],
    ),
    (
        "already exists and was left unchanged",
        "a client with rights=overwrite may overwrite it",
        &[A::Service],
    ),
    (
        "already exists and was left unchanged",
        "overwrite it with --force, or name another TARGET",
        &[A::Receive],
    ),
    ("already exists and was left unchanged", "`receive --force` overwrites it", &[A::Offer]),
    ("already exists and was left unchanged", "name another DESTINATION", &[A::Copy]),
    (
        "begin with a dot may configure programs",
        "the receiver can allow such names with --dotfiles, or with rights=dotfiles in a client's line",
        &[A::Send, A::Offer],
    ),
    (
        "begin with a dot may configure programs",
        "allow such names with --dotfiles",
        &[A::Receive, A::Serve],
    ),
    (
        "begin with a dot may configure programs",
        "rights=dotfiles in the client's line allows such names",
        &[A::Service],
    ),
    ("choose another name", "choose another name with --name NAME", &[A::Send, A::Offer]),
    ("choose another name", "choose another name with `send --name NAME`", &[A::Serve, A::Service]),
    ("choose another name", "choose another DESTINATION", &[A::Copy]),
    ("choose another name", "choose another TARGET", &[A::Receive]),
    (
        "send it under another name",
        "send it under another name with --name NAME",
        &[A::Send, A::Offer],
    ),
    (
        "send it under another name",
        "send it under another name with `send --name NAME`",
        &[A::Serve, A::Service],
    ),
    ("several sources are named", "the second under another --name", &[A::Send, A::Offer]),
    ("several sources are named", "the second to another DESTINATION", &[A::Copy]),
    ("\" is not a valid pattern", "see --exclude", &[A::Copy, A::Send, A::Offer]),
    (
        "standard output takes one file",
        "pack them with `tar c SOURCE | sweetspot send -`, or receive with `serve --dir DIRECTORY`",
        &[A::Send],
    ),
    (
        "standard output takes one file",
        "receive a directory with `serve --dir DIRECTORY`",
        &[A::Serve],
    ),
    ("standard output takes one file", "name a directory as TARGET", &[A::Receive]),
    ("standard output takes one file", "give `receive` a directory as TARGET", &[A::Offer]),
    (
        "choose another address or port",
        "choose another address or port with --listen ADDR:PORT",
        &[A::Send, A::Offer, A::Serve, A::Service],
    ),
    ("choose another address or port", "choose another port with --port PORT", &[A::Copy]),
    (
        "has expired",
        "--lifetime of `serve` or `serve invite` sets how long one is valid",
        &[A::Send, A::Serve, A::Service],
    ),
    (
        "accepts one transfer, which is already running",
        "serve without --once accepts more",
        &[A::Serve],
    ),
    (
        "give them, or use fixed:SIZE",
        "give them with --path-rate and --path-rtt, or use fixed:SIZE",
        &[A::Send, A::Offer, A::Serve, A::Service],
    ),
    ("this is not a ticket", "or give HOST:PORT of a TCP server", &[A::Measure]),
    ("attributes were left out", "start the receiver with --xattrs", FILE_VERBS),
    ("give the number of seeds instead", "--seeds N", &[A::Other]),
    ("add loss_a", "add --loss-a", &[A::Other]),
    ("add loss_b", "add --loss-b", &[A::Other]),
    (
        "neither JSON nor lines of JSON",
        "`run --out` and `sweep --out` write such files",
        &[A::Other],
    ),
    ("JSON that no report shows", "`run --out` and `sweep --out` write such files", &[A::Other]),
];

/// `line`, written by a library or a peer, with the hint for `hint_verb` that fixes the error.
pub fn with_options(line: &str, hint_verb: HintVerb) -> Cow<'_, str> {
    let meant = |(words, _, verbs): &&Hint| line.contains(words) && verbs.contains(&hint_verb);
    match HINTS.iter().find(meant) {
        Some((_, option, _)) if line.contains(option) => Cow::Borrowed(line),
        Some((words, option, _)) if words.split(' ').next() == option.split(' ').next() => {
            Cow::Owned(line.replace(words, option))
        }
        Some((_, option, _)) => Cow::Owned(format!("{line}; {option}")),
        None => Cow::Borrowed(line),
    }
}

/// The text of `error`, with hints for `hint_verb`.
pub fn of(error: &(dyn Error + 'static), hint_verb: HintVerb) -> String {
    let mut line = error.to_string();
    // A field of the question has the name of its option.
    if let Some(AdviceError::Impossible { what, .. }) = error.downcast_ref()
        && !what.contains(' ')
    {
        line = format!("--{}{}", what.replace('_', "-"), &line[what.len()..]);
    }
    with_options(&line, hint_verb).into_owned()
}

#[cfg(test)]
mod tests {
    use sweetspot_transfer::TransferError as E;

    use super::*;

    #[test]
    fn a_missing_parameter_has_the_name_of_its_option() {
        let why = "a loss form needs both parameters; add loss_b, or fit measurements";
        let alone = AdviceError::Impossible { what: "loss_a", given: "alone".into(), why };
        assert_eq!(
            of(&alone, A::Other),
            "--loss-a alone is impossible: a loss form needs both parameters; add --loss-b, or fit measurements"
        );
    }

    #[test]
    fn an_error_names_the_option_that_fixes_it() {
        let path = || "a/b".into();
        let source = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
        let in_use = || E::Listen { address: "[::]:1".into(), source: source() };
        for (error, hint_verb, option) in [
            (E::Exists(path()), A::Send, "--force"),
            (E::Exists(path()), A::Receive, "--force"),
            (E::Exists(path()), A::Offer, "`receive --force`"),
            (E::Exists(path()), A::Copy, "DESTINATION"),
            (E::InUse(path()), A::Send, "--name"),
            (E::NotADirectory(path()), A::Send, "--name"),
            (E::NotADirectory(path()), A::Copy, "DESTINATION"),
            (E::IsDirectory(path()), A::Offer, "--name"),
            (E::SameName(path()), A::Send, "--name"),
            (E::SameName(path()), A::Copy, "DESTINATION"),
            (E::IsDirectory(path()), A::Receive, "TARGET"),
            (E::Dotfile(path()), A::Serve, "--dotfiles"),
            (E::Dotfile(path()), A::Service, "rights=dotfiles"),
            (E::Exists(path()), A::Service, "rights=overwrite"),
            (E::OneOutput, A::Serve, "--dir"),
            (E::OneOutput, A::Receive, "TARGET"),
            (E::Pattern { pattern: "[".into(), reason: "it is open".into() }, A::Copy, "--exclude"),
            (in_use(), A::Serve, "--listen"),
            (in_use(), A::Copy, "--port"),
            (E::Expired("192.0.2.1:5".into()), A::Serve, "--lifetime"),
            (E::TicketExpired("ticket"), A::Serve, "--lifetime"),
            (E::TicketExpired("code"), A::Serve, "--lifetime"),
            (E::Taken("192.0.2.1:5".into()), A::Serve, "--once"),
        ] {
            let line = of(&error, hint_verb);
            let fault = error.to_string();
            assert!(line.starts_with(fault.split(';').next().unwrap()), "{line}");
            assert!(line.contains(option), "{line}");
            assert_eq!(with_options(&line, hint_verb), line, "a hint is given once");
        }
        let expired = E::Expired("192.0.2.1:5".into());
        assert_eq!(of(&expired, A::Receive), expired.to_string(), "an offer has no --lifetime");
    }

    /// A hint names options of its reader's verb, or names the other verb.
    #[test]
    fn no_hint_names_an_option_that_the_verb_lacks() {
        let program = crate::program();
        let has = |verb: &str, option: &str| {
            let verb = program.find_subcommand(verb).unwrap();
            verb.get_arguments().any(|argument| argument.get_long() == Some(option))
        };
        for (fault, hint, verbs) in HINTS {
            for hint_verb in *verbs {
                let own = match hint_verb {
                    A::Copy => "copy",
                    A::Send | A::Offer => "send",
                    A::Receive => "receive",
                    A::Serve | A::Service => "serve",
                    A::Measure | A::Other => continue,
                };
                let words = || hint.split([' ', ',', ';', '`', '(', ')', ':']);
                for option in words().filter_map(|word| word.strip_prefix("--")) {
                    let named = words()
                        .any(|word| program.find_subcommand(word).is_some() && has(word, option));
                    let peers = hint.contains("the receiver");
                    assert!(has(own, option) || named || peers, "{hint_verb:?}: {fault}: {hint}");
                }
            }
        }
    }

    #[test]
    fn an_impossible_field_is_reported_as_its_option() {
        let error =
            AdviceError::Impossible { what: "input_rate", given: "0 bit/s".into(), why: "no" };
        assert_eq!(of(&error, A::Other), "--input-rate 0 bit/s is impossible: no");
    }
}
