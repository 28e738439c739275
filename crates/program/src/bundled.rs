//! The bundled scenarios, by the names of their files below `scenarios`.

use sweetspot_path::named_path;
use sweetspot_scenario::{Scenario, nearest};

include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of the bundled scenario `name`: its path without `.toml`, or the last component of that.
pub fn scenario(name: &str) -> Result<String, String> {
    find(name).map(str::to_owned).ok_or_else(|| unknown(name))
}

/// Whether a bundled scenario has this name.
pub fn is_scenario(name: &str) -> bool {
    find(name).is_some()
}

/// The scenario name most similar to `name`.
pub fn nearest_to(name: &str) -> Option<&'static str> {
    let paths = SCENARIOS.iter().map(|(path, _)| *path);
    let last = paths.clone().filter_map(|path| path.rsplit_once('/')).map(|(_, last)| last);
    nearest(name, paths.chain(last))
}

/// Name and title of every scenario.
pub fn titles() -> Vec<(&'static str, String)> {
    let title = |text| Scenario::parse(text).map_or(String::new(), |scenario| scenario.title);
    SCENARIOS.iter().map(|(name, text)| (*name, title(text))).collect()
}

fn find(name: &str) -> Option<&'static str> {
    let whole = SCENARIOS.iter().find(|(path, _)| *path == name);
    let last = |path: &str| path.rsplit_once('/').map(|(_, last)| last) == Some(name);
    let found = whole.or_else(|| SCENARIOS.iter().find(|(path, _)| last(path)));
    found.map(|(_, text)| *text)
}

/// The error for a `name` without a scenario: all names if it is empty, an explanation if it is a path's name, otherwise the most
/// similar name.
fn unknown(name: &str) -> String {
    let first = name.split_whitespace().next().unwrap_or_default();
    if named_path(first).is_some() {
        return format!(
            "@{name}: a path has this name, not a scenario: give it to `sweetspot emulate --path` or \
             `sweetspot advise window --path`; a scenario has a [path] of its own (man sweetspot-scenario)"
        );
    }
    let paths = || SCENARIOS.iter().map(|(path, _)| *path);
    if name.is_empty() {
        let names: String = paths().map(|path| format!("\n  @{path}")).collect();
        return format!("the program comes with these scenarios; name one of them:{names}");
    }
    let nearest = nearest_to(name).map_or_else(
        || ", such as @elephants".to_owned(),
        |path| format!("; did you mean @{path}?"),
    );
    format!(
        "@{name}: no scenario of that name comes with the program; `sweetspot run @` lists \
         them{nearest}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_name_and_is_valid() {
        assert!(SCENARIOS.len() > 30);
        for (path, text) in SCENARIOS {
            assert_eq!(scenario(path).as_deref(), Ok(*text));
            Scenario::parse(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        assert_eq!(scenario("sobas-fig5-mice"), scenario("papers/sobas-fig5-mice"));
    }

    #[test]
    fn the_error_for_a_path_name_points_to_emulate() {
        for name in ["lte", "lte rtt=20ms"] {
            let error = scenario(name).unwrap_err();
            assert!(error.starts_with(&format!("@{name}: a path has this name")), "{error}");
            assert!(error.contains("`sweetspot emulate --path`"), "{error}");
        }
    }

    #[test]
    fn an_unknown_scenario_error_names_the_nearest_and_the_list_command() {
        let error = scenario("elephnats").unwrap_err();
        assert!(
            error.ends_with("`sweetspot run @` lists them; did you mean @elephants?"),
            "{error}"
        );
        let error = scenario("nosuch").unwrap_err();
        assert!(error.contains("`sweetspot run @` lists them"), "{error}");
        assert!(error.len() < 160, "{error}");
        // One line per scenario, as the command prints them.
        let all = scenario("").unwrap_err();
        assert_eq!(all.lines().count(), 1 + SCENARIOS.len());
        assert!(all.contains("\n  @elephants\n"), "{all}");
    }
}
