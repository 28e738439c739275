//! Reads the lists of JSON members in help texts, for tests that compare them with the JSON.

use std::collections::BTreeSet;

/// The last column in which a name may begin; descriptions are further right.
const LAST_INDENT: usize = 8;

/// The names in a list: each line begins with an indent and a name, or several names with commas between them.
pub fn listed(list: &str) -> BTreeSet<String> {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let lines = list.lines().filter(|line| (1..=LAST_INDENT).contains(&indent(line)));
    let mut names = BTreeSet::new();
    for line in lines {
        for word in line.split_whitespace() {
            names.insert(word.trim_end_matches(',').to_owned());
            if !word.ends_with(',') {
                break;
            }
        }
    }
    names
}

/// The names of all members of `document`, including nested objects.
pub fn written(document: &impl serde::Serialize) -> BTreeSet<String> {
    let document = serde_json::to_value(document).unwrap();
    sweetspot_testing::member_names(&document).into_iter().collect()
}

#[test]
fn member_names_are_read_from_the_first_column_and_at_any_depth() {
    let list = "Members:\n  a, b             numbers, or none\n                   more, words\n    c_s              time\n  long_name,\n    d";
    let expected = ["a", "b", "c_s", "d", "long_name"].map(str::to_owned);
    assert_eq!(listed(list), BTreeSet::from(expected));
    let document = serde_json::json!({ "a": [{ "b": 1 }], "c": { "d": null } });
    assert_eq!(written(&document), BTreeSet::from(["a", "b", "c", "d"].map(str::to_owned)));
}
