//! All reproduced figures and tables, and a lookup by name.

use sweetspot_experiment::StudyError;
use sweetspot_scenario::nearest;

use super::figure::Entry;
use super::{bdp, blog, drs, heffner, router};

/// Every figure and table of every paper.
const LISTS: [&[Entry]; 5] =
    [bdp::ENTRIES, drs::ENTRIES, heffner::ENTRIES, blog::ENTRIES, router::ENTRIES];

/// Every figure and table, paper by paper.
pub fn catalogue() -> impl Iterator<Item = &'static Entry> {
    LISTS.into_iter().flatten()
}

/// The entries that `words` select: `all`, a paper (`bdp`), a figure (`bdp-fig3`), or a short name
/// (`fig3`).
pub fn find(words: &[String]) -> Result<Vec<&'static Entry>, StudyError> {
    let mut found: Vec<&Entry> = Vec::new();
    for word in words {
        let prefix = format!("{word}-");
        let named = |entry: &&Entry| {
            word == "all"
                || entry.name == word
                || entry.aliases.contains(&word.as_str())
                || entry.name.starts_with(&prefix)
        };
        let before = found.len();
        found.extend(catalogue().filter(named));
        if found.len() == before {
            let names = catalogue().flat_map(|e| [e.name].into_iter().chain(e.aliases.to_vec()));
            let names: Vec<&str> = names.collect();
            return Err(StudyError::UnknownFigure {
                name: word.clone(),
                nearest: nearest(word, names)
                    .map_or(String::new(), |name| format!("; did you mean {name}?")),
                known: catalogue().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            });
        }
    }
    let mut seen = Vec::new();
    found.retain(|entry| {
        !seen.contains(&entry.name) && {
            seen.push(entry.name);
            true
        }
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let names = |found: Vec<&Entry>| found.into_iter().map(|entry| entry.name).collect();
        find(&words).map(names).map_err(|error| error.to_string())
    }

    #[test]
    fn no_name_or_alias_is_used_twice() {
        let mut names: Vec<&str> = catalogue()
            .flat_map(|entry| [entry.name].into_iter().chain(entry.aliases.iter().copied()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn short_names_papers_and_all_select_each_figure_once() {
        assert_eq!(named(&["fig3", "bdp-fig3"]), Ok(vec!["bdp-fig3"]));
        assert!(named(&["drs"]).unwrap().iter().all(|name| name.starts_with("drs-")));
        assert_eq!(named(&["all", "fig3"]).unwrap().len(), catalogue().count());
    }

    #[test]
    fn the_error_for_an_unknown_figure_suggests_the_nearest_and_lists_all() {
        let error = named(&["bdp-figg3"]).unwrap_err();
        assert!(error.contains("did you mean bdp-fig3?"), "{error}");
        assert!(error.contains("heffner-fig4"), "{error}");
    }
}
