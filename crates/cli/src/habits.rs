//! Hints for options that a verb lacks, but that other programs or other verbs have. They replace clap's hint to
//! pass the option as a value.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options for progress and for resumed transfers.
const SHOWN_AND_RESUMED: &[&str] = &[
    "--human-readable",
    "--partial",
    "--progress",
    "--info",
    "--stats",
    "--append",
    "--append-verify",
    "--inplace",
];
const ALWAYS_SHOWN_AND_RESUMED: &str =
    "progress is shown and transfers resume without it; leave it out";

/// Options of other programs, and the hint for them in `copy` and `send`.
const HABITS: [(&[&str], &str); 15] = [
    (&["-r", "-R", "--recursive"], "directories are always copied whole; leave it out"),
    (
        &[
            "-a",
            "-p",
            "-t",
            "-l",
            "-H",
            "--archive",
            "--perms",
            "--times",
            "--links",
            "--hard-links",
        ],
        "modes, times and links are always kept; leave it out",
    ),
    (&["-S", "--sparse"], "holes are always kept; leave it out"),
    (&["-o", "-g", "--owner", "--group"], "`copy --owners` keeps owners and groups"),
    (&["-X"], "--xattrs moves extended attributes"),
    (&["-z", "-C", "--compress"], "`copy` compresses where that is faster; leave it out"),
    (
        &["-P"],
        "progress is shown and transfers resume without it; a port of ssh goes into --ssh 'ssh -p PORT'",
    ),
    (SHOWN_AND_RESUMED, ALWAYS_SHOWN_AND_RESUMED),
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
    (&["-W", "--whole-file"], "changed files are sent whole, except with --checksum; leave it out"),
    (&["--ignore-existing"], "`copy --keep-existing` leaves existing files alone"),
    (
        &["--del", "--delete-after", "--delete-before", "--delete-during", "--delete-delay"],
        "`copy --delete` deletes once everything has arrived",
    ),
    (&["-e", "-i", "-F", "--rsh"], "options of ssh go into --ssh, as in --ssh 'ssh -i FILE'"),
];

/// The verbs used in place of scp and rsync.
const VERBS: &[&str] = &["copy", "send"];

/// The verbs at the receiving end.
const RECEIVERS: &[&str] = &["receive", "serve"];

/// Options of other programs, and the hint for them in `receive` and `serve`.
const RECEIVER_HABITS: [(&[&str], &str); 9] = [
    (&["-r", "-R", "--recursive"], "directories always arrive whole; leave it out"),
    (
        &[
            "-a",
            "-t",
            "-l",
            "-H",
            "-S",
            "--archive",
            "--perms",
            "--times",
            "--links",
            "--hard-links",
            "--sparse",
        ],
        "modes, times, links and holes are always kept; leave it out",
    ),
    (&["-X"], "--xattrs accepts extended attributes"),
    (&["-z", "-C", "--compress"], "only `copy` compresses; leave it out"),
    (&["-P"], ALWAYS_SHOWN_AND_RESUMED),
    (SHOWN_AND_RESUMED, ALWAYS_SHOWN_AND_RESUMED),
    (
        &["-c", "--checksum", "--include", "--filter", "--max-size", "--min-size", "--name"],
        "the sender decides that: see `send`",
    ),
    (
        &["-u", "--update", "--ignore-existing", "--keep-existing"],
        "existing files are left unchanged without --force",
    ),
    (
        &["-e", "-i", "-J", "--rsh", "--ssh", "--delete", "--bwlimit", "--owners"],
        "only `copy` has it, which needs ssh",
    ),
];

/// Verbs, an option that they lack, and the hint for it.
const OTHER_VERBS: [(&[&str], &[&str], &str); 9] = [
    (&["serve", "send"], &["-p", "--port"], "--listen ADDR:PORT sets the port"),
    (&["receive"], &["-p", "--port"], "the ticket holds the port"),
    (&["receive"], &["-n", "--dry-run"], "the sender has it: `send --dry-run` to a `serve`"),
    (
        &["receive"],
        &["-d", "--dir", "-o", "--out", "--output"],
        "the target follows the ticket: sweetspot receive TICKET TARGET",
    ),
    (&["serve"], &["-d", "--directory", "-o", "--out", "--output"], "--dir names the directory"),
    (
        &["send"],
        &["--force", "--overwrite", "--dotfiles"],
        "the receiver decides that: `serve` and `receive` have --force and --dotfiles",
    ),
    (&["receive", "serve"], &["--overwrite"], "--force overwrites existing files"),
    (&["receive", "serve"], &["--exclude", "--files-from"], "the sender chooses: see `send`"),
    (&["send"], &["--delete", "--bwlimit", "--owners", "--keep-existing"], "only `copy` has it"),
];

/// Options of `serve` for its one ticket, and what takes their place with --clients.
const FOR_ONE_TICKET: &[(&str, &str)] = &[
    ("--force", "give a client rights=overwrite in its line"),
    ("--dotfiles", "give a client rights=dotfiles in its line"),
    ("--once", "add once to a client's line"),
    ("--lifetime", "add expires=TIME to a client's line"),
    ("--spoken-code", "use `serve invite --spoken-code`"),
];

/// The line for an option that `typed` has from another program or verb; `None` for any other error.
pub fn line(error: &clap::Error, typed: impl Iterator<Item = OsString>) -> Option<String> {
    let verb = typed.skip(1).find_map(|word| {
        let others = OTHER_VERBS.iter().flat_map(|(verbs, ..)| *verbs);
        VERBS.iter().chain(others).find(|verb| word == **verb)
    })?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand if *verb == "serve" => {
            let operand = text(ContextKind::InvalidSubcommand)?;
            let nearest = match error.get(ContextKind::SuggestedSubcommand) {
                Some(ContextValue::Strings(nearest)) => nearest.first(),
                _ => None,
            };
            let nearest =
                nearest.map_or(String::new(), |nearest| format!(", or `serve {nearest}`"));
            Some(format!("serve takes no operand {operand}: write --dir {operand}{nearest}"))
        }
        ErrorKind::UnknownArgument => {
            let option = text(ContextKind::InvalidArg)?;
            let habits = HABITS.iter().map(|(options, hint)| (VERBS, *options, *hint));
            let receivers =
                RECEIVER_HABITS.iter().map(|(options, hint)| (RECEIVERS, *options, *hint));
            let (.., hint) = habits
                .chain(OTHER_VERBS)
                .chain(receivers)
                .find(|(verbs, options, _)| verbs.contains(verb) && options.contains(&option))?;
            Some(format!("{verb} has no {option}: {hint}"))
        }
        ErrorKind::ArgumentConflict if *verb == "serve" => {
            let options = [text(ContextKind::InvalidArg)?, text(ContextKind::PriorArg)?];
            let is_service = |option: &&str| option.starts_with("--clients ");
            options.iter().find(|option| is_service(option))?;
            let other = options.iter().find(|option| !is_service(option))?.split(' ').next()?;
            let (_, instead) = FOR_ONE_TICKET.iter().find(|(option, _)| *option == other)?;
            Some(format!("{other} has no effect with --clients: {instead}"))
        }
        _ => None,
    }
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
    fn scp_and_rsync_options_get_a_fitting_hint() {
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
            ("sweetspot copy --archive x y", "always kept; leave it out"),
            ("sweetspot copy --rsh=ssh x y", "--ssh 'ssh -i FILE'"),
            ("sweetspot copy --delete-after x y", "`copy --delete`"),
            ("sweetspot send --recursive x", "send has no --recursive: directories"),
            ("sweetspot serve --dir in -p 9000", "serve has no -p: --listen ADDR:PORT"),
            ("sweetspot serve in", "write --dir in"),
            ("sweetspot receive --dir in x", "sweetspot receive TICKET TARGET"),
            ("sweetspot send x --force", "the receiver decides that"),
            ("sweetspot send x --bwlimit 1M", "only `copy` has it"),
            ("sweetspot receive -a sweetspot1:x", "receive has no -a: modes, times, links"),
            ("sweetspot receive --checksum sweetspot1:x", "the sender decides that: see `send`"),
            ("sweetspot receive -P sweetspot1:x", "resume without it"),
            ("sweetspot serve --dir in --bwlimit 1M", "only `copy` has it"),
            ("sweetspot serve --dir in -rz", "directories always arrive whole"),
            ("sweetspot serve --dir in --ignore-existing", "unchanged without --force"),
            ("sweetspot serve --clients c --force", "give a client rights=overwrite"),
            ("sweetspot serve --once --clients c", "--once has no effect with --clients: add once"),
            ("sweetspot serve --clients c --spoken-code", "`serve invite --spoken-code`"),
        ] {
            let line = typed(wrong).unwrap_or_else(|| panic!("{wrong}: no hint"));
            assert!(line.contains(words), "{wrong}: {line}");
        }
        // These are other verbs, or options that these verbs have.
        for other in [
            "sweetspot top -a",
            "sweetspot copy -Q x y",
            "sweetspot copy -r x y",
            "sweetspot copy --recursive x y",
        ] {
            assert_eq!(typed(other), None, "{other}");
        }
    }

    /// A hint for an option that all of its verbs have would never be printed.
    #[test]
    fn no_habit_hint_covers_an_option_that_every_verb_has() {
        let program = crate::program();
        let has = |verb: &&str, option: &str| {
            let verb = program.find_subcommand(verb).unwrap();
            verb.get_arguments().any(|argument| {
                argument.get_long().map(|long| format!("--{long}")).as_deref() == Some(option)
                    || argument.get_short().map(|short| format!("-{short}")).as_deref()
                        == Some(option)
            })
        };
        let habits = HABITS.iter().map(|(options, _)| (VERBS, *options));
        let receivers = RECEIVER_HABITS.iter().map(|(options, _)| (RECEIVERS, *options));
        let habits = habits.chain(receivers);
        for (verbs, options) in
            habits.chain(OTHER_VERBS.map(|(verbs, options, _)| (verbs, options)))
        {
            for option in options {
                assert!(!verbs.iter().all(|verb| has(verb, option)), "{verbs:?} {option}");
            }
        }
    }
}
