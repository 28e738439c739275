//! Options of scp and rsync that `copy` and `send` do not need: the hint replaces clap's, to pass the option as a value.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An option of another program, and the next step in `copy` and `send`.
const HABITS: [(&[&str], &str); 11] = [
    (&["-r", "-R", "--recursive"], "directories are always copied whole; leave it out"),
    (
        &["-a", "-p", "-t", "-l", "-H", "--archive"],
        "modes, times and links are always kept; leave it out",
    ),
    (&["-o", "-g"], "`copy --owners` keeps owners and groups"),
    (&["-X"], "--xattrs moves extended attributes"),
    (&["-z", "-C", "--compress"], "`copy` compresses where that is faster; leave it out"),
    (
        &["-P"],
        "progress is shown and transfers resume without it; a port of ssh goes into --ssh 'ssh -p PORT'",
    ),
    (
        &["--partial", "--progress", "--stats", "--append", "--append-verify", "--inplace"],
        "progress is shown and transfers resume without it; leave it out",
    ),
    (
        &[
            "-f",
            "--include",
            "--include-from",
            "--exclude-from",
            "--filter",
            "--max-size",
            "--min-size",
        ],
        "select names with --exclude, or list them for --files-from, for example with find",
    ),
    (
        &["-u", "--update"],
        "`copy` replaces files whose length or time differs, and --keep-existing replaces none",
    ),
    (&["-c"], "--checksum compares contents"),
    (&["-e", "-i", "-F"], "options of ssh go into --ssh, as in --ssh 'ssh -i FILE'"),
];

/// The verbs that people use in place of scp and rsync.
const VERBS: [&str; 2] = ["copy", "send"];

/// The line for an option of scp or rsync; `None` for any other error.
pub fn line(error: &clap::Error, typed: impl Iterator<Item = OsString>) -> Option<String> {
    let verb = typed.skip(1).find_map(|word| VERBS.iter().find(|verb| word == **verb))?;
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let (_, hint) = HABITS.iter().find(|(options, _)| options.contains(&option.as_str()))?;
    Some(format!("{verb} has no {option}: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Option<String> {
        let words = || line.split(' ').map(OsString::from);
        let error = crate::program().try_get_matches_from(words()).err()?;
        super::line(&error, words())
    }

    #[test]
    fn options_of_scp_and_rsync_get_a_hint_that_fits() {
        for (wrong, words) in [
            ("sweetspot copy -a x y", "copy has no -a: modes, times and links are always kept"),
            ("sweetspot copy -avz x y", "-a"),
            ("sweetspot copy -vz x y", "compresses where that is faster"),
            ("sweetspot copy -P 22 x y", "--ssh 'ssh -p PORT'"),
            ("sweetspot copy -rvP x y", "resume without it"),
            ("sweetspot send -r x", "send has no -r: directories"),
            ("sweetspot copy --progress x y", "--progress: progress is shown"),
            ("sweetspot copy --include '*.c' x y", "select names with --exclude"),
            ("sweetspot copy -u x y", "--keep-existing replaces none"),
        ] {
            let line = typed(wrong).unwrap_or_else(|| panic!("{wrong}: no hint"));
            assert!(line.contains(words), "{wrong}: {line}");
        }
        // Not these verbs, or not an option of theirs.
        for other in ["sweetspot top -a", "sweetspot copy -Q x y", "sweetspot copy -r x y"] {
            assert_eq!(typed(other), None, "{other}");
        }
    }

    /// A hint for an option that a verb has would never be seen.
    #[test]
    fn no_habit_is_an_option_of_both_verbs() {
        let program = crate::program();
        let has = |verb: &&str, option: &str| {
            let verb = program.find_subcommand(verb).unwrap();
            verb.get_arguments().any(|argument| {
                argument.get_long().map(|long| format!("--{long}")).as_deref() == Some(option)
                    || argument.get_short().map(|short| format!("-{short}")).as_deref()
                        == Some(option)
            })
        };
        for option in HABITS.iter().flat_map(|(options, _)| *options) {
            assert!(!VERBS.iter().all(|verb| has(verb, option)), "{option}");
        }
    }
}
