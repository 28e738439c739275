//! Existing files with the name of an entry: which are replaced, and the report of a dry run.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode};

use super::*;

/// Puts one of [`EXISTING`] at `path`.
fn put(thing: &str, path: &Path) {
    match thing {
        "nothing" => {}
        "file" => fs::write(path, "old").unwrap(),
        "link" => symlink("outside", path).unwrap(),
        "empty directory" => fs::create_dir(path).unwrap(),
        "directory" => {
            fs::create_dir(path).unwrap();
            fs::write(path.join("kept"), "kept").unwrap();
        }
        _ => rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
    }
}

const EXISTING: [&str; 6] = ["nothing", "file", "link", "empty directory", "directory", "pipe"];

/// Entries received under that name.
fn kinds() -> [EntryKind; 4] {
    let link = |target: &str| EntryKind::Symlink { target: target.into() };
    [EntryKind::File { size: 5, sparse: false }, EntryKind::Directory, link("y"), link("/etc")]
}

const LEAVING: Policy = Policy { leave: true, ..REFUSING };
const REFUSING: Policy = Policy { replace: false, other_kinds: false, ..REPLACING };
const SAME_KIND: Policy = Policy { other_kinds: false, ..REPLACING };

/// Receives an entry `x` where `existing` already has that name, beside a directory `outside` with a file. Returns the failures,
/// whether the entry exists or would exist, and the kind of `x` afterwards.
fn arrive(
    existing: &str,
    kind: &EntryKind,
    policy: Policy,
) -> (Vec<String>, bool, Option<FileType>) {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    fs::create_dir(directory.join("outside")).unwrap();
    fs::write(directory.join("outside/safe"), "safe").unwrap();
    put(existing, &directory.join("x"));
    let status = || rustix::fs::lstat(directory.join("x")).ok();
    let before = status().map(|stat| (stat.st_ino, stat.st_size));
    let mut sender =
        Sender { files: incoming(directory, None, policy), sizes: Vec::new(), checksum: false };
    sender.list("x", kind.clone());
    if kind.has_content() && !policy.dry_run {
        sender.send(0, 0, 1, 1, true);
    }
    sender.files.complete().unwrap();
    let after = status();
    let changed = after.as_ref().map(|stat| (stat.st_ino, stat.st_size)) != before;
    assert_eq!(fs::read_to_string(directory.join("outside/safe")).unwrap(), "safe");
    assert!(!(policy.dry_run && changed), "a dry run changes nothing");
    assert!(existing != "directory" || fs::read(directory.join("x/kept")).is_ok());
    let names = fs::read_dir(directory).unwrap().count();
    assert_eq!(names, 1 + usize::from(after.is_some()), "nothing else is left there");
    let arrives = if policy.dry_run { !sender.files.take_dry_run().is_empty() } else { changed };
    let kind = after.map(|stat| FileType::from_raw_mode(stat.st_mode));
    let place = format!("{}/", directory.display());
    let failures = sender.files.summary().1.iter().map(|line| line.replace(&place, "")).collect();
    (failures, arrives, kind)
}

/// As with rsync, except that nothing replaces a pipe or a directory with contents.
#[test]
fn files_links_and_empty_directories_replace_each_other() {
    for existing in EXISTING {
        for kind in kinds() {
            let (failures, arrives, now) = arrive(existing, &kind, REPLACING);
            let wanted = match kind {
                EntryKind::File { .. } => FileType::RegularFile,
                EntryKind::Directory => FileType::Directory,
                _ => FileType::Symlink,
            };
            let is_directory = existing.ends_with("directory");
            let stays =
                existing == "pipe" || existing == "directory" && wanted != FileType::Directory;
            let case = format!("{kind:?} where there is {existing}: {failures:?}");
            assert_eq!(failures.len(), usize::from(stays), "{case}");
            assert_eq!(now == Some(wanted), !stays, "{case}");
            let updated = is_directory && wanted == FileType::Directory;
            assert_eq!(arrives, !stays && !updated, "{case}");
        }
    }
}

#[test]
fn existing_entries_are_replaced_only_if_allowed() {
    for existing in &EXISTING[1..] {
        for (kind, policy) in
            kinds().into_iter().flat_map(|kind| [(kind.clone(), LEAVING), (kind, REFUSING)])
        {
            let (_, arrives, _) = arrive(existing, &kind, policy);
            assert!(!arrives, "{kind:?} where there is {existing}");
        }
    }
}

/// The policy of a receiver that need not trust its sender, with `--force`.
#[test]
fn only_files_and_links_are_replaced_unless_other_kinds_are_allowed() {
    for existing in &EXISTING[1..] {
        for kind in kinds() {
            let (_, arrives, _) = arrive(existing, &kind, SAME_KIND);
            let gives_way = ["file", "link"].contains(existing) && kind != EntryKind::Directory;
            assert_eq!(arrives, gives_way, "{kind:?} where there is {existing}");
        }
    }
}

/// An outward link is rejected before the receiver looks at its name.
#[test]
fn a_dry_run_reports_the_failures_of_the_real_run() {
    for existing in EXISTING {
        for kind in kinds() {
            let inward = Policy { outward_links: false, ..REPLACING };
            for policy in [REPLACING, SAME_KIND, LEAVING, REFUSING, inward] {
                let real = arrive(existing, &kind, policy);
                let dry = arrive(existing, &kind, Policy { dry_run: true, ..policy });
                let case = format!("{kind:?} where there is {existing}, {policy:?}");
                assert_eq!((dry.0, dry.1), (real.0, real.1), "{case}");
            }
        }
    }
}

/// A sender's attributes for the target directory, with another mode and an old time.
#[test]
fn an_existing_directory_gets_at_most_a_new_mtime() {
    let long_ago = (1_000_000_000, 0);
    let status = DirectoryStatus { mode: 0o777, modified: long_ago, owner: None };
    let keeping = Policy { replace: false, other_kinds: false, ..REPLACING };
    let rehearsing = Policy { dry_run: true, ..REPLACING };
    let named = || Top::Named(b"f".to_vec());
    for (policy, top, gets_time) in [
        (REPLACING, Top::Sent, true),
        (keeping, Top::Sent, false),
        (rehearsing, Top::Sent, false),
        (REPLACING, named(), false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let before = directory.path().metadata().unwrap();
        let target = TargetDirectory::open(directory.path(), View::default()).unwrap();
        let destination = Destination::Directory { target, top };
        let expected = RequestedSources::Anything.expect(&Offer::default()).unwrap();
        let files = IncomingFiles::new(destination, policy, Bounds::default(), expected);
        files.with_top_status(Some(status.clone())).complete().unwrap();
        let after = directory.path().metadata().unwrap();
        assert_eq!(after.mode(), before.mode());
        let time = if gets_time { long_ago.0 } else { before.mtime() };
        assert_eq!(after.mtime(), time, "{policy:?}");
    }
}
