//! The value of `--path`: a path's keys, a path's name, or a scenario that has a path.

use sweetspot_path::{NAMED_PATHS, PathError, named_path, nearest};

use crate::bundled;

/// Whether `text` means a scenario: a file, or the name of a bundled one. Names of paths take precedence.
pub fn is_scenario(text: &str) -> bool {
    let name = text.strip_prefix('@');
    text.ends_with(".toml")
        || name.is_some_and(|name| named_path(name).is_none() && bundled::is_scenario(name))
}

/// `error` with a suggestion: an unknown path name may be a scenario's, with or without its `@`.
pub fn wrong_path(error: &PathError) -> String {
    let message = wrong_path_without_scenarios(error);
    match error {
        PathError::UnknownName(name) if !bundled::is_scenario(name) => {
            scenarios_too(&message, name)
        }
        _ => message,
    }
}

/// Adds to `message` how to list the scenarios, and the name that was probably meant.
fn scenarios_too(message: &str, name: &str) -> String {
    let known = format!("{message}; for named scenarios, `sweetspot run @` lists them");
    let is_near_path = NAMED_PATHS.iter().any(|path| nearest(name, [path.name]).is_some());
    match bundled::nearest_to(name).filter(|_| !is_near_path) {
        Some(scenario) => format!("{known}; did you mean @{scenario}?"),
        None => known,
    }
}

/// As [`wrong_path`], for a verb that does not accept scenarios.
pub fn wrong_path_without_scenarios(error: &PathError) -> String {
    let name = match error {
        PathError::UnknownName(name) => name,
        PathError::NotAPair(word) if bundled::is_scenario(word) => {
            return format!("{error}; @{word} is a scenario");
        }
        PathError::NotAPair(word) if std::path::Path::new(word).is_file() => {
            return match word.ends_with(".toml") {
                true => format!(
                    "path: {word} is a scenario file, which only `emulate` and `advise window` take; write rate=, rtt= and buffer="
                ),
                false => {
                    format!("path: {word} is a file; the name of a scenario file ends in .toml")
                }
            };
        }
        _ => return error.to_string(),
    };
    if bundled::is_scenario(name) {
        return format!(
            "path: @{name} is a scenario; `sweetspot emulate --path @{name}` and `sweetspot advise window --path \
             @{name}` take its path as it is; for another path, write rate=, rtt= and buffer="
        );
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use sweetspot_path::PathSpec;

    use super::*;

    #[test]
    fn scenarios_and_paths_are_distinguished_by_name() {
        for scenario in ["@elephants", "@papers/sobas-fig5-mice", "@sobas-fig5-mice", "mine.toml"] {
            assert!(is_scenario(scenario), "{scenario}");
        }
        for path in
            ["@lte", "@nosuch", "@", "rate=1Mbit/s rtt=1ms buffer=9kB", "@elephants rtt=1ms"]
        {
            assert!(!is_scenario(path), "{path}");
        }
        // No path and scenario have the same name.
        assert!(NAMED_PATHS.iter().all(|path| !bundled::is_scenario(path.name)));
    }

    #[test]
    fn an_existing_file_without_toml_extension_gets_a_hint() {
        let wrong = |text: &str| wrong_path(&text.parse::<PathSpec>().unwrap_err());
        // Tests run in the crate's directory.
        assert!(wrong("src/lib.rs").ends_with("ends in .toml"), "{}", wrong("src/lib.rs"));
        assert!(!wrong("src/no-such-file").contains("ends in .toml"));
        let scenario = wrong("Cargo.toml");
        assert!(scenario.contains("write rate=, rtt= and buffer="), "{scenario}");
    }

    #[test]
    fn the_error_for_an_unknown_path_points_to_the_scenarios() {
        let wrong = |text: &str| wrong_path(&text.parse::<PathSpec>().unwrap_err());
        let scenario = wrong("@elephants rtt=1ms");
        assert!(
            scenario.starts_with(
                "path: @elephants is a scenario; `sweetspot emulate --path @elephants`"
            )
        );
        let neither = wrong("@nosuch");
        assert!(
            neither.contains("expected one of @fibre")
                && neither.ends_with("`sweetspot run @` lists them")
        );
        assert!(wrong("@elephnats").ends_with("lists them; did you mean @elephants?"));
        assert!(wrong("elephants").ends_with("; @elephants is a scenario"));
        // A similar path takes precedence over a scenario.
        assert!(wrong("@lt").contains("\"@lt\" (did you mean @lte?)"));
        assert!(wrong("@lt").ends_with("lists them"));
        assert_eq!(wrong("rtt=1ms,rtt=2ms"), "path: rtt is given twice; keep one");
    }
}
