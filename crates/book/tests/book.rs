//! The book can be built, contains every document, and has no broken links.

use std::fs;
use std::path::{Path, PathBuf};

type TestResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_book_has_no_broken_links() -> TestResult {
    let site = tempfile::tempdir()?;
    sweetspot_book::build(&docs(), site.path())?;
    assert!(site.path().join("tutorial.html").exists());
    // It links to the page beside it, which is checked below.
    let diagnosis = fs::read_to_string(site.path().join("diagnose-in-browser.html"))?;
    assert!(diagnosis.contains("<iframe src=\"diagnose/page.html\""));
    assert_eq!(sweetspot_book::broken_links(site.path())?, Vec::<String>::new());
    Ok(())
}

/// The Markdown files in a directory, as paths relative to `root`.
fn documents(root: &Path, below: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(documents(root, &path)?);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

#[test]
fn every_document_is_in_the_summary() -> TestResult {
    let summary = fs::read_to_string(docs().join("SUMMARY.md"))?;
    let left_out: Vec<_> = documents(&docs(), Path::new(""))?
        .into_iter()
        .filter(|path| !path.ends_with("SUMMARY.md"))
        .filter(|path| !summary.contains(&format!("({})", path.display())))
        .collect();
    assert_eq!(left_out, Vec::<PathBuf>::new(), "docs/SUMMARY.md names every document");
    Ok(())
}

#[test]
fn every_results_page_begins_with_an_abstract() -> TestResult {
    let labels = ["Question", "Method", "Result", "Limitation", "Command"];
    for page in documents(&docs(), Path::new("results"))? {
        let text = fs::read_to_string(docs().join(&page))?;
        let list = text.split("\n\n").nth(1).unwrap_or_default();
        let found: Vec<_> = list
            .lines()
            .filter_map(|line| line.strip_prefix("- **")?.split("**: ").next())
            .collect();
        assert_eq!(found, labels, "{}", page.display());
    }
    Ok(())
}

const PAGES: [(&str, &str); 3] = [
    ("index.html", r##"<h1 id="top"></h1><a href="#top"></a><a href="in/a.html#one"></a>"##),
    ("in/a.html", r#"<h2 id="one"></h2><a href="../index.html#top"></a><img src="picture.svg">"#),
    ("in/picture.svg", "<svg/>"),
];

fn site(more: &str) -> Result<tempfile::TempDir, std::io::Error> {
    let site = tempfile::tempdir()?;
    fs::create_dir(site.path().join("in"))?;
    for (name, content) in PAGES {
        fs::write(site.path().join(name), content)?;
    }
    fs::write(site.path().join("in/more.html"), more)?;
    Ok(site)
}

#[test]
fn valid_local_links_and_external_links_are_not_reported() -> TestResult {
    let site = site(r#"<a href="https://example.org/#x"></a><a href="a.html"></a>"#)?;
    assert_eq!(sweetspot_book::broken_links(site.path())?, Vec::<String>::new());
    Ok(())
}

#[test]
fn links_to_missing_files_missing_anchors_or_outside_the_site_are_reported() -> TestResult {
    let site = site(
        r##"<a href="b.html"></a><a href="a.html#two"></a><a href="#top"></a>
        <a href="../../README.md"></a><img src="/in/picture.svg">"##,
    )?;
    assert_eq!(
        sweetspot_book::broken_links(site.path())?,
        [
            "in/more.html: #top: there is no such anchor",
            "in/more.html: ../../README.md: there is no such file",
            "in/more.html: /in/picture.svg: there is no such file",
            "in/more.html: a.html#two: there is no such anchor",
            "in/more.html: b.html: there is no such file",
        ]
    );
    Ok(())
}
