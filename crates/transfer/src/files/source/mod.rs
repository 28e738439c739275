//! A sender's files: their list, made during the walk, and their content.

mod named;
mod patterns;
mod root;
mod snapshot;
mod walk;

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use sweetspot_protocol::DirectoryStatus;
use sweetspot_protocol::record::Entry;
use sweetspot_units::Bytes;

use crate::files::accounts::Accounts;
use crate::{Result, TransferError};
use named::{SourcePath, distinct, found, none_left};
pub(crate) use patterns::Patterns;
pub(crate) use root::{SourceFile, Undelivered};
pub(crate) use snapshot::Snapshot;
use walk::Walk;

/// The paths to send.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Files and directories. `-` is standard input. A directory with a trailing `/` means its contents.
    pub paths: Vec<PathBuf>,
    /// Names below the only path, one for each thing to send, in place of all of it.
    pub only: Option<Vec<PathBuf>>,
    /// The name at the receiver of the only path; `None`: its own.
    pub name: Option<String>,
    /// Patterns of names to leave out, by rsync's rules.
    pub exclude: Vec<String>,
    /// Whether to send extended attributes.
    pub attributes: bool,
    /// Whether to send owners and groups.
    pub owners: bool,
    /// Whether to send holes as content.
    pub dense: bool,
}

impl Sources {
    /// Whether they can be sent, as far as that is known before: they are there, and the names and patterns are good.
    pub fn check(&self) -> Result<()> {
        SourceList::new(self).map(|_| ())
    }

    /// Why some of them cannot be sent, one line each; the others can.
    pub fn missing(&self) -> Result<Vec<String>> {
        found(self).map(|(_, missing)| missing)
    }

    /// Whether a pattern of names to leave out can be used; an error is its fault.
    pub fn check_pattern(pattern: &str) -> Result<(), &'static str> {
        patterns::check(pattern)
    }

    /// Whether one of them stands for the contents of a directory.
    pub fn are_contents(&self) -> Result<bool> {
        SourceList::new(self).map(|list| list.tops.iter().any(|top| top.name.is_none()))
    }
}

/// Sources that have been checked, so that they can be listed.
pub(crate) struct SourceList {
    tops: Vec<SourcePath>,
    /// Why each of the other sources cannot be sent.
    missing: Vec<String>,
    only: Option<Vec<PathBuf>>,
    exclude: Patterns,
    attributes: bool,
    /// The names of users and groups, if owners are sent.
    owners: Option<Accounts>,
    dense: bool,
    /// Its name on this host.
    pub name: String,
    /// Its name for the receiver, which need not know its location.
    pub offered: String,
    pub size: Option<Bytes>,
    pub one_file: bool,
    pub many: bool,
    /// The first directory that comes as its contents.
    pub contents_of: Option<DirectoryStatus>,
}

/// An entry, or the reason why there is none.
pub(crate) enum Listed {
    /// With its content, if it has any.
    Entry(Entry, Option<SourceFile>),
    LeftOut(String),
}

impl SourceList {
    /// Checks the paths to send.
    pub fn new(sources: &Sources) -> Result<SourceList> {
        let [first, rest @ ..] = &sources.paths[..] else {
            return Err(TransferError::NothingToSend("name a file or a directory".into()));
        };
        if sources.name.is_some() && !rest.is_empty() {
            let why = "only a single file or directory can get another name; several are given"
                .to_owned();
            return Err(TransferError::NothingToSend(why));
        }
        let (mut tops, missing) = found(sources)?;
        let metadata = (rest.is_empty() && !tops[0].standard_input)
            .then(|| std::fs::metadata(first).map_err(|e| unreadable(first, e)))
            .transpose()?;
        let only_file = metadata.as_ref().is_some_and(Metadata::is_file);
        let one_file = only_file || rest.is_empty() && tops[0].standard_input;
        let exclude = Patterns::new(&sources.exclude)?;
        tops.retain(|top| !top.is_excluded(&exclude));
        if tops.is_empty() {
            return Err(none_left(missing));
        }
        distinct(&tops)?;
        let contents = tops.iter().any(|top| top.name.is_none());
        let name = match (&tops[..], contents) {
            ([top], false) if missing.is_empty() => {
                String::from_utf8_lossy(top.name.as_deref().unwrap_or_default()).into_owned()
            }
            ([top], true) if missing.is_empty() => top.path.display().to_string(),
            _ => format!("{} items", tops.len() + missing.len()),
        };
        let owners = sources.owners.then(Accounts::of_this_host);
        // Of a list, only the named paths come.
        let first_contents = tops.iter().find(|top| top.name.is_none() && sources.only.is_none());
        let contents_of =
            first_contents.map(|top| status(&top.path, owners.as_ref())).transpose()?;
        Ok(SourceList {
            many: !rest.is_empty() || contents,
            only: sources.only.clone(),
            exclude,
            attributes: sources.attributes,
            owners,
            dense: sources.dense,
            offered: offered(&tops, &name),
            tops,
            missing,
            name,
            size: metadata.filter(|_| only_file).map(|metadata| Bytes::new(metadata.len())),
            one_file,
            contents_of,
        })
    }

    /// Whether the content can be sent again: standard input cannot.
    pub fn can_be_repeated(&self) -> bool {
        self.tops.iter().all(|top| !top.standard_input)
    }

    /// Lists everything, in order; ends early when `take` refuses.
    pub fn list(&self, mut take: impl FnMut(Listed) -> Result<()>) -> Result<()> {
        self.missing.iter().try_for_each(|why| take(Listed::LeftOut(why.clone())))?;
        let mut walk = Walk::new(self, &mut take);
        self.tops.iter().try_for_each(|top| walk.top(top))
    }
}

/// Where the next data of a file is at or after `offset`; `size` if there is none.
pub(crate) fn next_data(file: &File, offset: u64, size: u64) -> u64 {
    match rustix::fs::seek(file.as_fd(), SeekFrom::Data(offset)) {
        Ok(data) => data.min(size),
        Err(Errno::NXIO) => size,
        // A file system that knows no holes has content everywhere.
        Err(_) => offset.min(size),
    }
}

/// The name of `tops` at the receiver: the last name of the only path, which may stand for its contents.
fn offered(tops: &[SourcePath], name: &str) -> String {
    let [SourcePath { path, name: None, .. }] = tops else { return name.to_owned() };
    let last = path.canonicalize().ok().and_then(|full| full.file_name().map(OsStr::to_owned));
    last.map_or_else(|| "files".to_owned(), |last| last.to_string_lossy().into_owned())
}

/// The attributes of the directory at `path`, with its owner if there are names for it.
fn status(path: &Path, names: Option<&Accounts>) -> Result<DirectoryStatus> {
    let metadata = std::fs::metadata(path).map_err(|e| unreadable(path, e))?;
    Ok(DirectoryStatus {
        mode: metadata.mode() & 0o777,
        modified: (metadata.mtime(), metadata.mtime_nsec() as u32),
        owner: names.map(|names| names.owner(metadata.uid(), metadata.gid())),
    })
}

fn unreadable(path: &Path, source: io::Error) -> TransferError {
    TransferError::Unreadable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    use sweetspot_protocol::record::EntryKind;

    fn listed(sources: Sources) -> Vec<(String, EntryKind)> {
        let mut all = Vec::new();
        let list = SourceList::new(&sources).unwrap();
        list.list(|item| {
            if let Listed::Entry(entry, ..) = item {
                all.push((entry.path.to_string(), entry.kind));
            }
            Ok(())
        })
        .unwrap();
        all
    }

    fn names(sources: Sources) -> Vec<String> {
        listed(sources).into_iter().map(|(name, _)| name).collect()
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/deep.txt"), "deep").unwrap();
        fs::write(top.join("one.txt"), "one").unwrap();
        fs::write(top.join("two.log"), "two").unwrap();
        fs::hard_link(top.join("one.txt"), top.join("uno.txt")).unwrap();
        symlink("one.txt", top.join("zlink")).unwrap();
        dir
    }

    fn sources(path: PathBuf) -> Sources {
        Sources { paths: vec![path], ..Sources::default() }
    }

    #[test]
    fn a_directory_is_listed_in_order_under_its_name() {
        let dir = tree();
        let all = listed(sources(dir.path().join("top")));
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "top",
            "top/a",
            "top/a/b",
            "top/a/b/deep.txt",
            "top/one.txt",
            "top/two.log",
            "top/uno.txt",
            "top/zlink",
        ];
        assert_eq!(names, expected);
        assert_eq!(all[6].1, EntryKind::HardLink { to: 4 });
        assert_eq!(all[7].1, EntryKind::Symlink { target: b"one.txt".to_vec() });
    }

    #[test]
    fn a_trailing_slash_sends_the_directory_contents() {
        let dir = tree();
        let path = PathBuf::from(format!("{}/", dir.path().join("top").display()));
        let list = SourceList::new(&sources(path.clone())).unwrap();
        assert!(list.many);
        assert_eq!(names(sources(path))[..2], ["a", "a/b"]);
    }

    #[test]
    fn sources_with_the_same_name_are_rejected() {
        let dir = tree();
        let top = dir.path().join("top");
        fs::write(top.join("a/one.txt"), "another").unwrap();
        fs::create_dir_all(top.join("b/a")).unwrap();
        for (first, second) in [("one.txt", "a/one.txt"), ("a", "b/a"), ("a", "a")] {
            let paths = vec![top.join(first), top.join(second)];
            let refused = SourceList::new(&Sources { paths, ..Sources::default() });
            assert!(matches!(refused, Err(TransferError::SameName(_))), "{first} {second}");
        }
    }

    /// The contents of two directories make one; the first has precedence.
    #[test]
    fn a_file_name_already_in_an_earlier_source_is_left_out() {
        let dir = tree();
        let second = dir.path().join("second");
        fs::create_dir_all(second.join("a/b")).unwrap();
        fs::write(second.join("a/b/deep.txt"), "another").unwrap();
        fs::write(second.join("new"), "new").unwrap();
        let contents = |name: &str| PathBuf::from(format!("{}/{name}/", dir.path().display()));
        let paths = vec![contents("top"), contents("second")];
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let take = |item| {
            match item {
                Listed::Entry(entry, Some(_)) => files.push(entry.path.to_string()),
                Listed::Entry(..) => {}
                Listed::LeftOut(why) => left_out.push(why),
            }
            Ok(())
        };
        let sources = Sources { paths, ..Sources::default() };
        SourceList::new(&sources).unwrap().list(take).unwrap();
        assert_eq!(files, ["a/b/deep.txt", "one.txt", "two.log", "new"]);
        let second = second.join("a/b/deep.txt");
        let why = format!("{}: another source has this name; it was left out", second.display());
        assert_eq!(left_out, [why]);
    }

    #[test]
    fn excluded_names_are_left_out_with_their_contents() {
        let dir = tree();
        let with = |pattern: &str| {
            let exclude = vec![pattern.to_owned()];
            names(Sources { exclude, ..sources(dir.path().join("top")) })
        };
        assert!(!with("*.log").contains(&"top/two.log".to_owned()));
        assert!(!with("b").iter().any(|name| name.contains("deep")));
        assert!(!with("top/a").iter().any(|name| name.contains("deep")));
        assert!(with("/a").iter().any(|name| name.contains("deep")));
        let exclude = vec!["[".to_owned()];
        assert!(SourceList::new(&Sources { exclude, ..sources(dir.path().into()) }).is_err());
    }

    #[test]
    fn listed_names_are_sent_with_their_parent_directories() {
        let dir = tree();
        let only = Some(vec!["a/b/deep.txt".into(), "missing".into()]);
        let path = PathBuf::from(format!("{}/", dir.path().join("top").display()));
        assert_eq!(names(Sources { only, ..sources(path) }), ["a", "a/b", "a/b/deep.txt"]);
    }

    #[test]
    fn existing_sources_are_sent_despite_a_missing_one() {
        let dir = tree();
        let missing = dir.path().join("missing");
        let paths = vec![missing.clone(), dir.path().join("top/one.txt")];
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let take = |item| {
            match item {
                Listed::Entry(entry, _) => files.push(entry.path.to_string()),
                Listed::LeftOut(why) => left_out.push(why),
            }
            Ok(())
        };
        let list = SourceList::new(&Sources { paths, ..Sources::default() }).unwrap();
        // The target of two sources is a directory, whether or not both are there.
        assert!(list.many && !list.one_file);
        list.list(take).unwrap();
        assert_eq!(files, ["one.txt"]);
        let [why] = &left_out[..] else { panic!("{left_out:?}") };
        assert!(why.starts_with(&format!("{}: No such file", missing.display())), "{why}");
        let exclude = vec!["one.txt".to_owned()];
        let paths = vec![missing, dir.path().join("top/one.txt")];
        let none = SourceList::new(&Sources { paths, exclude, ..Sources::default() }).err();
        assert!(matches!(none, Some(TransferError::NothingMoved { count: 1, .. })));
    }

    #[test]
    fn the_error_for_a_missing_source_names_it() {
        let missing = SourceList::new(&sources("/nowhere/at/all".into())).err().unwrap();
        assert!(missing.to_string().contains("/nowhere/at/all"));
        assert!(SourceList::new(&Sources::default()).is_err());
    }

    /// A directory is swapped for a link to another one just after it was listed.
    #[test]
    fn a_directory_swapped_for_a_link_during_the_walk_is_skipped() {
        let dir = tree();
        let (top, outside) = (dir.path().join("top"), dir.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        let list = SourceList::new(&sources(top.clone())).unwrap();
        let (mut names, mut left_out) = (Vec::new(), Vec::new());
        let walked = list.list(|item| {
            match item {
                Listed::Entry(entry, ..) if entry.path.as_bytes() == b"top/a" => {
                    fs::rename(top.join("a"), dir.path().join("away")).unwrap();
                    symlink(&outside, top.join("a")).unwrap();
                }
                Listed::Entry(entry, ..) => names.push(entry.path.to_string()),
                Listed::LeftOut(why) => left_out.push(why),
            }
            Ok(())
        });
        walked.unwrap();
        assert_eq!(names, ["top", "top/one.txt", "top/two.log", "top/uno.txt", "top/zlink"]);
        assert_eq!(left_out.len(), 1, "{left_out:?}");
    }

    #[test]
    fn listed_names_do_not_follow_links() {
        let dir = tree();
        let top = dir.path().join("top");
        symlink("a", top.join("within")).unwrap();
        symlink("/", top.join("root")).unwrap();
        let only =
            ["within/b/deep.txt", "root/etc/passwd", "/etc/passwd", "../top/one.txt", "zlink"];
        let only = Some(only.map(PathBuf::from).to_vec());
        let path = PathBuf::from(format!("{}/", top.display()));
        assert_eq!(names(Sources { only, ..sources(path) }), ["zlink"]);
    }

    /// 1500 levels: more than a thread's descriptors or a small stack allow, if each level took one or a frame.
    #[test]
    fn a_tree_may_be_deeper_than_the_stack() {
        const LEVELS: usize = 1500;
        let dir = tempfile::tempdir().unwrap();
        let deep = "d/".repeat(LEVELS);
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::write(dir.path().join(&deep).join("file"), "deep").unwrap();
        // Each directory on the way back has another name to be listed, by a descriptor that is opened again.
        fs::write(dir.path().join("d/d/last"), "last").unwrap();
        let path = PathBuf::from(format!("{}/", dir.path().display()));
        let listing = std::thread::Builder::new().stack_size(128 << 10);
        let listing = listing.spawn(move || names(sources(path))).unwrap();
        let names = listing.join().unwrap();
        assert_eq!(names.len(), LEVELS + 2);
        assert_eq!(names.last().unwrap(), "d/d/last");
    }

    #[test]
    fn an_offer_does_not_reveal_the_location_of_a_directory() {
        let dir = tree();
        for end in ["", "/", "/.", "/a/.."] {
            let path = PathBuf::from(format!("{}{end}", dir.path().join("top").display()));
            let list = SourceList::new(&sources(path)).unwrap();
            assert_eq!(list.offered, "top", "{end}");
        }
    }

    #[test]
    fn holes_in_a_file_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len(10 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 5 << 20).unwrap();
        let file = File::open(&path).unwrap();
        let data = next_data(&file, 0, 10 << 20);
        assert!(data <= 5 << 20);
        let metadata = file.metadata().unwrap();
        if metadata.blocks() * 512 < metadata.len() {
            assert!(data > 4 << 20);
            assert_eq!(next_data(&file, 6 << 20, 10 << 20), 10 << 20);
        }
    }
}
