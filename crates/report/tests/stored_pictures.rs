//! Checks that the documents' pictures, made by long runs, have today's colours.

use std::fs;
use std::path::{Path, PathBuf};

use sweetspot_experiment::plot::{Axis, Plot};
use sweetspot_report::{Theme, svg_file};

/// Every picture below `directory`.
fn pictures(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pictures(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "svg") {
            found.push(path);
        }
    }
}

fn style(svg: &str) -> &str {
    let begins = svg.find("<style>").expect("a picture has a style");
    let ends = svg.find("</style>").expect("a style ends");
    &svg[begins..ends]
}

#[test]
fn stored_charts_have_the_current_style() {
    let plot = Plot::new("", Axis::new("x"), Axis::new("y"));
    let new = svg_file("", &[plot], Theme::Screen);
    let mut found = Vec::new();
    pictures(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")), &mut found);
    assert!(found.len() > 40, "{}", found.len());
    for path in found {
        let stored = fs::read_to_string(&path).unwrap();
        // Scripts draw other pictures: bars and terminal recordings.
        if !stored.contains(r#"class="chart""#) {
            continue;
        }
        let same = style(&stored) == style(&new);
        assert!(same, "{}: make it again, or give it the style of new pictures", path.display());
    }
}
