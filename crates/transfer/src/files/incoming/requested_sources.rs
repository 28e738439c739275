//! The receiver's request, and the check of offers and entries against it.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sweetspot_protocol::record::{Entry, EntryKind};
use sweetspot_protocol::{Offer, Printable};

use crate::{Result, TransferError};

/// The sources that a receiver requests. If a sender lists anything else, the transfer ends before any of it is
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RequestedSources {
    /// Any sources: the sender chooses, as for uploads to a server.
    #[default]
    Anything,
    /// The sources that the sender's offer names.
    Offered,
    /// The sources that this end's user named.
    Named(Box<NamedThings>),
}

/// Sources at the other end, as this end's user named them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedThings {
    /// The last component of each source; `None`: the contents of a directory, which have names unknown to this end.
    names: Vec<Option<Vec<u8>>>,
    dry_run: bool,
}

/// A source with a top-level name that this end cannot determine, such as `..`.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: this end cannot tell the name of such a path; add a slash to copy its contents, or give its name",
    Printable(.0)
)]
pub struct Nameless(String);

impl NamedThings {
    /// The sources with these paths, by the rules of [`crate::Sources::paths`].
    pub fn at<'a>(
        paths: impl IntoIterator<Item = &'a Path>,
        dry_run: bool,
    ) -> Result<NamedThings, Nameless> {
        let name = |path: &'a Path| {
            if NamedThings::stands_for_contents(path) {
                return Ok(None);
            }
            let name = path.file_name().map(|name| Some(name.as_bytes().to_vec()));
            name.ok_or_else(|| Nameless(path.to_string_lossy().into_owned()))
        };
        let names = paths.into_iter().map(name).collect::<Result<_, _>>()?;
        Ok(NamedThings { names, dry_run })
    }

    /// Whether this path means the contents of a directory.
    pub fn stands_for_contents(path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        bytes == b"." || bytes.ends_with(b"/") || bytes.ends_with(b"/.")
    }

    fn many(&self) -> bool {
        self.names.len() != 1 || self.names.contains(&None)
    }
}

/// Names allowed at the top level of a transfer, and the names seen so far.
pub(crate) struct Expected {
    /// How often each name may occur as a file; `None`: every name is allowed.
    names: Option<HashMap<Name, u32>>,
    /// Whether only one file is allowed.
    one_file: bool,
}

/// A name at the top level. The name in an offer is text, so it is compared as text.
#[derive(PartialEq, Eq, Hash)]
enum Name {
    Bytes(Vec<u8>),
    Text(String),
}

impl RequestedSources {
    pub(crate) fn is_dry_run(&self) -> bool {
        matches!(self, RequestedSources::Named(things) if things.dry_run)
    }

    /// The names allowed after this offer. Fails if the offer does not match the request.
    pub(crate) fn expect(&self, offer: &Offer) -> Result<Expected> {
        let refuse = |what: &str| {
            let what = format!("{} ({what})", offer.name);
            Err(TransferError::NotAskedFor(what))
        };
        let names = match self {
            RequestedSources::Anything => return Ok(Expected { names: None, one_file: false }),
            RequestedSources::Offered if offer.many => None,
            RequestedSources::Offered => {
                Some(HashMap::from([(Name::Text(offer.name.raw().to_owned()), 1)]))
            }
            RequestedSources::Named(things) => {
                if offer.dry_run != things.dry_run {
                    return refuse("its offer is for another kind of transfer");
                }
                match (things.many(), offer.many) {
                    (true, false) => return refuse("one thing, where several were asked for"),
                    (false, true) => return refuse("several things, where one was asked for"),
                    _ => {}
                }
                let mut names = HashMap::new();
                for name in things.names.iter().flatten() {
                    *names.entry(Name::Bytes(name.clone())).or_default() += 1;
                }
                (!things.names.contains(&None)).then_some(names)
            }
        };
        if offer.one_file && offer.many {
            return refuse("several things that are one file");
        }
        Ok(Expected { names, one_file: offer.one_file })
    }
}

impl Expected {
    /// Checks entries before anything is written for them.
    pub fn check(&mut self, entries: &[Entry]) -> Result<()> {
        entries.iter().try_for_each(|entry| self.check_one(entry))
    }

    fn check_one(&mut self, entry: &Entry) -> Result<()> {
        let refused = || Err(TransferError::NotAskedFor(entry.path.to_string()));
        let bytes = entry.path.as_bytes();
        let top = bytes.split(|byte| *byte == b'/').next().unwrap_or(bytes);
        let at_top = top.len() == bytes.len();
        if self.one_file && !(at_top && entry.kind.has_content()) {
            return refused();
        }
        let Some(names) = &mut self.names else { return Ok(()) };
        let named = match names.get_mut(&Name::Bytes(top.to_vec())) {
            Some(named) => Some(named),
            None => names.get_mut(&Name::Text(String::from_utf8_lossy(top).into_owned())),
        };
        let Some(files_left) = named else { return refused() };
        match entry.kind {
            // A directory may be listed again, with more contents.
            EntryKind::Directory => {}
            _ if !at_top => {}
            // Senders follow a link that the receiver named, and never list a special file by its own name.
            EntryKind::Symlink { .. } | EntryKind::Special => return refused(),
            EntryKind::File { .. } | EntryKind::Stream | EntryKind::HardLink { .. } => {
                match files_left.checked_sub(1) {
                    Some(rest) => *files_left = rest,
                    None => return refused(),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_protocol::RelativePath;

    const FILE: EntryKind = EntryKind::File { size: 1, sparse: false };

    fn entry(path: &str, kind: EntryKind) -> Entry {
        let path = RelativePath::new(path).unwrap();
        Entry { path, kind, mode: 0o644, modified: (0, 0), owner: None, attributes: vec![] }
    }

    fn offer(name: &str, many: bool, one_file: bool) -> Offer {
        Offer { name: name.into(), many, one_file, ..Offer::default() }
    }

    fn named(paths: &[&str]) -> RequestedSources {
        RequestedSources::Named(Box::new(
            NamedThings::at(paths.iter().map(Path::new), false).unwrap(),
        ))
    }

    /// Whether each entry, one after another, is accepted.
    fn accepted(
        requested: &RequestedSources,
        offer: &Offer,
        entries: &[(&str, EntryKind)],
    ) -> Vec<bool> {
        let mut expected = requested.expect(offer).unwrap();
        let mut take =
            |(path, kind): &(&str, EntryKind)| expected.check(&[entry(path, kind.clone())]).is_ok();
        entries.iter().map(&mut take).collect()
    }

    #[test]
    fn a_requested_file_is_accepted_once_and_nothing_else() {
        let link = EntryKind::Symlink { target: b"/etc".to_vec() };
        let entries = [
            ("report.pdf", FILE),
            ("report.pdf", FILE),
            ("report.pdf", EntryKind::HardLink { to: 0 }),
            (".bashrc", FILE),
            (".ssh", EntryKind::Directory),
            (".ssh/authorized_keys", FILE),
            ("report.pdf", link),
        ];
        let requested = named(&["docs/report.pdf"]);
        let accepted = accepted(&requested, &offer("report.pdf", false, false), &entries);
        assert_eq!(accepted, [true, false, false, false, false, false, false]);
    }

    #[test]
    fn a_requested_directory_includes_its_contents_and_nothing_else() {
        let link = EntryKind::Symlink { target: b"b".to_vec() };
        let entries = [
            ("photos", EntryKind::Directory),
            ("photos/a", FILE),
            ("photos/l", link),
            ("photos/s", EntryKind::Special),
            ("photos", EntryKind::Special),
            ("photos2/a", FILE),
            ("a", FILE),
        ];
        let accepted = accepted(&named(&["x/photos"]), &offer("photos", false, false), &entries);
        assert_eq!(accepted, [true, true, true, true, false, false, false]);
    }

    #[test]
    fn each_requested_name_is_accepted_as_often_as_requested() {
        let entries = [("x", FILE), ("x", FILE), ("y", FILE), ("x", FILE), ("z", FILE)];
        let accepted =
            accepted(&named(&["a/x", "b/x", "y"]), &offer("3 things", true, false), &entries);
        assert_eq!(accepted, [true, true, true, false, false]);
    }

    #[test]
    fn directory_contents_may_have_any_name() {
        for path in ["dir/", ".", "./", "dir/.", "/"] {
            let entries = [("a", FILE), ("b", EntryKind::Directory), ("b/c", FILE)];
            assert_eq!(accepted(&named(&[path]), &offer("dir", true, false), &entries), [true; 3]);
        }
    }

    #[test]
    fn an_offer_of_the_wrong_number_or_kind_is_rejected() {
        // An offer of several sources would create a directory with a new name.
        assert!(named(&["f"]).expect(&offer("f", true, false)).is_err());
        assert!(named(&["f", "g"]).expect(&offer("f", false, true)).is_err());
        assert!(named(&["d/"]).expect(&offer("f", false, true)).is_err());
        assert!(RequestedSources::Offered.expect(&offer("f", true, true)).is_err());
        // Nothing would be written, although the copy would seem to succeed.
        let dry = Offer { dry_run: true, ..offer("f", false, true) };
        assert!(named(&["f"]).expect(&dry).is_err());
    }

    #[test]
    fn entries_must_match_the_offer() {
        let entries = [("f", FILE), ("f", FILE), ("g", FILE), ("f", EntryKind::Directory)];
        let one_file = accepted(&RequestedSources::Offered, &offer("f", false, true), &entries);
        assert_eq!(one_file, [true, false, false, false]);
        let entries = [("d", EntryKind::Directory), ("d/f", FILE), ("f", FILE)];
        let tree = accepted(&RequestedSources::Offered, &offer("d", false, false), &entries);
        assert_eq!(tree, [true, true, false]);
        let stream = accepted(
            &RequestedSources::Offered,
            &offer("s", false, true),
            &[("s", EntryKind::Stream)],
        );
        assert_eq!(stream, [true]);
        let all = accepted(&RequestedSources::Offered, &offer("2 things", true, false), &entries);
        assert_eq!(all, [true; 3]);
    }

    #[test]
    fn a_non_utf_8_name_matches_the_lossy_name_of_the_offer() {
        let path = RelativePath::new(&b"a\xff"[..]).unwrap();
        let file = Entry { path, ..entry("x", FILE) };
        let mut expected =
            RequestedSources::Offered.expect(&offer("a\u{fffd}", false, true)).unwrap();
        assert!(expected.check(&[file]).is_ok());
    }

    #[test]
    fn a_requested_path_ending_in_dot_dot_is_rejected() {
        assert!(NamedThings::at([Path::new("..")], false).is_err());
        assert!(NamedThings::at([Path::new("a/..")], false).is_err());
        assert!(NamedThings::at([Path::new("../")], false).is_ok());
    }
}
