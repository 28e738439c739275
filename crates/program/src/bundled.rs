//! The scenarios that come with the program, by the names of their files below `scenarios`.

include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of the scenario `name`: its path without `.toml`, or the last part of that.
pub fn scenario(name: &str) -> Result<String, String> {
    let whole = SCENARIOS.iter().find(|(path, _)| *path == name);
    let last = |path: &str| path.rsplit_once('/').map(|(_, last)| last) == Some(name);
    let found = whole.or_else(|| SCENARIOS.iter().find(|(path, _)| last(path)));
    found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
        let names: Vec<String> = SCENARIOS.iter().map(|(path, _)| format!("@{path}")).collect();
        let names = names.join(", ");
        match name {
            "" => format!("the program comes with {names}; name one of them"),
            _ => format!(
                "@{name}: no scenario of that name comes with the program; there are {names}"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use sweetspot_scenario::Scenario;

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
    fn an_unknown_name_lists_the_known_ones() {
        assert!(scenario("elephant").unwrap_err().contains("@elephants"));
    }
}
