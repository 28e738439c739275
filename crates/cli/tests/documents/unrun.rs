//! Checks that blocks that do not run use existing verbs, options and make targets.

use std::path::Path;
use std::process::Command as Process;

use crate::block::Block;

/// The first part of `block` that does not exist: a verb, an option, or a make target.
pub fn check(block: &Block, root: &Path) -> Result<(), String> {
    for command in &block.commands {
        for simple in simple_commands(&command.typed) {
            match simple.first().map(String::as_str) {
                Some("sweetspot") => options_exist(&simple[1..])?,
                Some("make") => targets_exist(&simple[1..], root)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// The commands in a line of shell, as words without quotes. Words after `--` belong to another
/// program.
fn simple_commands(typed: &str) -> Vec<Vec<String>> {
    let typed = typed.replace("\\\n", " ");
    let code = typed.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let mut commands = vec![Vec::new()];
    for word in code.flat_map(str::split_whitespace) {
        match word {
            "&&" | "||" | "|" | "&" | ";" | "do" | "then" | "{" | "--" => commands.push(Vec::new()),
            "sudo" => {}
            _ => {
                let bare = word.trim_matches(|c| matches!(c, '\'' | '"' | '(' | ')' | ';'));
                if let Some(last) = commands.last_mut() {
                    last.push(bare.to_owned());
                }
            }
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn help(words: &[&str]) -> Option<String> {
    let output = Process::new(env!("CARGO_BIN_EXE_sweetspot")).args(words).arg("--help").output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn options_exist(words: &[String]) -> Result<(), String> {
    let Some(verb) = words.first().filter(|word| !word.starts_with('-')) else { return Ok(()) };
    let mut text = help(&[verb]).ok_or_else(|| format!("there is no verb {verb}"))?;
    let mut named = verb.clone();
    // A verb below a verb, such as `tune run`.
    let inner = words.get(1).map_or("", String::as_str);
    if text.contains("\nCommands:\n") && !inner.starts_with("--") {
        text = help(&[verb, inner]).ok_or_else(|| format!("{verb} has no verb {inner}"))?;
        named = format!("{verb} {inner}");
    }
    for word in words.iter().filter(|word| word.starts_with("--")) {
        let option = word.split('=').next().unwrap_or(word);
        let known = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '['));
        if !known.into_iter().any(|known| known == option) {
            return Err(format!("`sweetspot {named}` has no option {option}"));
        }
    }
    Ok(())
}

fn targets_exist(words: &[String], root: &Path) -> Result<(), String> {
    let makefile = std::fs::read_to_string(root.join("Makefile")).map_err(|e| e.to_string())?;
    // Variables follow the targets, and their values may have several words.
    let targets = words.iter().take_while(|word| !word.contains('='));
    for target in targets.filter(|word| !word.starts_with('-')) {
        if !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))) {
            return Err(format!("the Makefile has no target {target}"));
        }
    }
    Ok(())
}

#[test]
fn unknown_commands_and_options_are_found_in_blocks_that_are_not_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checked = |typed: &str| {
        let text = format!("```console,two-hosts\n$ {typed}\n```\n");
        let block = crate::block::read(&text).unwrap().remove(0);
        check(&block, &root)
    };
    assert_eq!(checked("sweetspot serve --dir in --once   # there"), Ok(()));
    assert_eq!(
        checked("make demo ARGS=\"--out /tmp/demo\" && sweetspot tune run -- curl -O x"),
        Ok(())
    );
    for wrong in [
        "sweetspot serves --dir in",
        "sweetspot serve --directory=in",
        "sudo sweetspot tune attached 4711",
        "sweetspot serve \\\n  --wrong",
        "cd x && make everything",
    ] {
        assert!(checked(wrong).is_err(), "{wrong}");
    }
}
