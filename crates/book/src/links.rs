use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::html::attributes;

/// A page's links and anchors.
struct Page {
    links: BTreeSet<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn new(html: &str) -> Page {
        let all = |name| attributes(html, name).map(str::to_owned);
        Page { links: all("href").chain(all("src")).collect(), anchors: all("id").collect() }
    }
}

/// The links within a site without a target file or anchor, one line each. External links are not checked. Errors come
/// from reading the files.
pub fn broken_links(site: &Path) -> io::Result<Vec<String>> {
    let mut files = BTreeSet::new();
    collect(site, Path::new(""), &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "html")) {
        pages.insert(file.clone(), Page::new(&fs::read_to_string(site.join(file))?));
    }
    let mut broken = Vec::new();
    for (file, page) in &pages {
        for link in page.links.iter().filter(|link| is_within(link)) {
            if let Some(reason) = why_broken(file, link, &files, &pages) {
                broken.push(format!("{}: {link}: {reason}", file.display()));
            }
        }
    }
    Ok(broken)
}

fn collect(site: &Path, below: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(site.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(site, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// An external link begins with a scheme (RFC 3986, section 3.1).
fn is_within(link: &str) -> bool {
    let scheme = link.split(['/', '?', '#']).next().unwrap_or_default();
    !scheme.contains(':')
}

fn why_broken(
    from: &Path,
    link: &str,
    files: &BTreeSet<PathBuf>,
    pages: &BTreeMap<PathBuf, Page>,
) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { Some(from.to_owned()) } else { resolved(from, path) };
    let Some(target) = target.filter(|target| files.contains(target)) else {
        return Some("there is no such file");
    };
    let page = pages.get(&target)?;
    let known = anchor.is_empty() || page.anchors.contains(anchor);
    (!known).then_some("there is no such anchor")
}

/// The target of `path` on the page `from`, both below the site; `None` if it leads out of the site.
fn resolved(from: &Path, path: &str) -> Option<PathBuf> {
    let mut target = from.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !target.pop() {
                    return None;
                }
            }
            Component::Normal(name) => target.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(target)
}
