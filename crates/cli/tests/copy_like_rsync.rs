//! Compares `sweetspot copy` with rsync: both exclude the same names, and replace the same entries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

fn copy(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(arguments).current_dir(directory).output().unwrap()
}

/// Runs rsync; `None` if it is not installed.
fn rsync(directory: &Path, arguments: &[&str]) -> Option<Output> {
    Command::new("rsync").arg("-a").args(arguments).current_dir(directory).output().ok()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The paths below a directory, sorted; directories with a slash, links with their target.
fn below(directory: &Path) -> Vec<String> {
    let (mut found, mut pending) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                found.push(name + "/");
                pending.push(path);
            } else if let Ok(target) = fs::read_link(&path) {
                found.push(format!("{name} -> {}", target.display()));
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

fn write(directory: &Path, files: &[&str]) {
    for name in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, *name).unwrap();
    }
}

const TREE: [&str; 9] = [
    "top/a.o",
    "top/raw",
    "top/foo/bar",
    "top/foo/a/bar",
    "top/foo/a/b/bar",
    "top/x/foo/bar",
    "top/x/raw/1",
    "top/x/cache/2",
    "top/b\\c",
];

/// Each pattern with both programs, for a directory and for its contents.
#[test]
fn exclude_patterns_match_the_same_names_as_in_rsync() {
    let patterns = [
        "*.o",
        "raw",
        "raw/",
        "/raw",
        "/top/raw",
        "foo/bar",
        "/foo/bar",
        "/top/foo/bar",
        "foo/*/bar",
        "/top/foo/**/bar",
        "/foo/**/bar",
        "foo/**",
        "**/bar",
        "f**r",
        "cache/***",
        "/top",
        "top",
        "top/",
        "[a-f]oo",
        "[[:alpha:]].o",
        "b\\c",
        "b\\\\c*",
        "ra?",
        "x/*",
        "x/raw/1",
        "*/raw",
    ];
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &TREE);
    for (number, pattern) in patterns.iter().enumerate() {
        for source in ["top", "top/"] {
            let (ours, theirs) = (format!("ours{number}"), format!("theirs{number}"));
            let Some(_) = rsync(dir, &["--exclude", pattern, source, &theirs]) else {
                sweetspot_testing::skipped("rsync is not installed");
                return;
            };
            copy(dir, &["--exclude", pattern, source, &ours]);
            let of = |name: &str| {
                if dir.join(name).exists() { below(&dir.join(name)) } else { Vec::new() }
            };
            assert_eq!(of(&ours), of(&theirs), "{pattern} {source}");
            let _ = [ours, theirs].map(|name| fs::remove_dir_all(dir.join(name)));
        }
    }
}

#[test]
fn exclude_also_applies_to_sources_and_listed_names() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &["a.o", "b.c", "top/x/a.o", "top/x/b.c", "top/cache/1"]);
    assert!(copy(dir, &["--exclude", "*.o", "a.o", "b.c", "there"]).status.success());
    assert_eq!(below(&dir.join("there")), ["b.c"]);
    let nothing = copy(dir, &["--exclude", "*.o", "a.o", "elsewhere"]);
    assert!(message(&nothing).contains("every source is excluded"), "{nothing:?}");
    fs::write(dir.join("list"), "x/a.o\nx/b.c\ncache/1\n").unwrap();
    let listed =
        ["--exclude", "*.o", "--exclude", "cache/", "--files-from", "list", "top/", "listed"];
    assert!(copy(dir, &listed).status.success());
    assert_eq!(below(&dir.join("listed")), ["x/", "x/b.c"]);
}

/// Directories with protected names are kept, in the dry run as in the real run.
#[test]
fn delete_keeps_excluded_entries_and_their_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    fs::create_dir(dir.join("source")).unwrap();
    write(dir, &["there/old/deep/keep.log", "there/old/deep/x", "there/gone/y", "there/cache/z"]);
    let arguments = ["--delete", "--exclude", "*.log", "--exclude", "cache/", "source/", "there"];
    let dry = copy(dir, &[&["-n"][..], &arguments].concat());
    let mut listed: Vec<String> =
        String::from_utf8(dry.stdout).unwrap().lines().map(str::to_owned).collect();
    listed.sort();
    let deleted = ["gone/", "gone/y", "old/deep/x"];
    assert_eq!(listed, deleted.map(|name| format!("would delete {name}")));
    let real = copy(dir, &arguments);
    assert!(message(&real).contains("3 deleted"), "{real:?}");
    assert_eq!(
        below(&dir.join("there")),
        ["cache/", "cache/z", "old/", "old/deep/", "old/deep/keep.log"]
    );
}

/// At the destination, each source finds an entry of another kind. rsync without `--force` or `--delete` replaces the same
/// ones.
#[test]
fn copy_replaces_the_same_entries_as_rsync() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let source = dir.join("source");
    write(
        &source,
        &["file-for-directory", "file-for-full", "directory-for-file/x", "directory-for-link/y"],
    );
    symlink("x", source.join("link-for-directory")).unwrap();
    for name in ["ours", "theirs"] {
        let there = dir.join(name);
        write(&there, &["directory-for-file", "file-for-full/kept"]);
        for empty in ["file-for-directory", "link-for-directory"] {
            fs::create_dir(there.join(empty)).unwrap();
        }
        symlink("../outside", there.join("directory-for-link")).unwrap();
    }
    write(dir, &["outside/safe"]);
    let copied = copy(dir, &["source/", "ours"]);
    assert_eq!(copied.status.code(), Some(23), "{copied:?}");
    let named = "file-for-full is a directory and was left unchanged; remove it, or choose another";
    assert!(message(&copied).contains(named), "{copied:?}");
    assert_eq!(below(&dir.join("outside")), ["safe"]);
    let expected = [
        "directory-for-file/",
        "directory-for-file/x",
        "directory-for-link/",
        "directory-for-link/y",
        "file-for-directory",
        "file-for-full/",
        "file-for-full/kept",
        "link-for-directory -> x",
    ];
    assert_eq!(below(&dir.join("ours")), expected);
    if rsync(dir, &["source/", "theirs"]).is_some() {
        assert_eq!(below(&dir.join("theirs")), expected);
    }
    // Only that one file is left to copy.
    let again = copy(dir, &["-n", "source/", "ours"]);
    assert!(again.stdout.is_empty() && again.status.code() == Some(23), "{again:?}");
}

#[test]
fn a_symbolic_link_as_destination_is_not_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &["file", "old"]);
    symlink("old", dir.join("link")).unwrap();
    for options in [&["file", "link"][..], &["-n", "file", "link"]] {
        let refused = copy(dir, options);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(
            message(&refused).contains("link is a symbolic link and was left unchanged"),
            "{refused:?}"
        );
    }
    assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old");
    assert_eq!(fs::read_link(dir.join("link")).unwrap(), Path::new("old"));
    // A link to a directory counts as the directory.
    fs::create_dir(dir.join("there")).unwrap();
    symlink("there", dir.join("way")).unwrap();
    assert!(copy(dir, &["file", "way"]).status.success());
    assert_eq!(below(&dir.join("there")), ["file"]);
}

#[test]
fn a_usage_error_exits_with_2_before_anything_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &["file"]);
    for (arguments, words) in [
        (&["--exclude", "a{", "file", "there"][..], "`{` has no `}`"),
        (&["file", "-"], "does not write to standard output"),
    ] {
        let refused = copy(dir, arguments);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(message(&refused).contains(words), "{refused:?}");
    }
    assert_eq!(below(dir), ["file"]);
}

/// Lengths around a piece of 256 KiB, and empty files at either end.
#[test]
fn a_checksum_copy_replaces_a_file_of_any_length() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let lengths = [0, 1, 2, 100, 80_000, 262_143, 262_144, 262_145, 300_000];
    for side in ["ours", "new"] {
        fs::create_dir(dir.join(side)).unwrap();
    }
    for (old, new) in lengths.iter().flat_map(|old| lengths.iter().map(move |new| (old, new))) {
        let name = format!("{old}-{new}");
        fs::write(dir.join("ours").join(&name), vec![b'o'; *old]).unwrap();
        fs::write(dir.join("new").join(name), vec![b'n'; *new]).unwrap();
    }
    let copied = copy(dir, &["--checksum", "new/", "ours"]);
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(below(&dir.join("ours")), below(&dir.join("new")));
    for name in below(&dir.join("new")) {
        let read = |side: &str| fs::read(dir.join(side).join(&name)).unwrap();
        assert_eq!(read("ours"), read("new"), "{name}");
    }
}

/// Like rsync, `copy` continues and exits with 23. rsync deletes nevertheless; `copy` does not, because it cannot know the
/// missing source's contents.
#[test]
fn a_missing_source_blocks_deletion_but_no_other_source() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &["src/a", "b", "there/old", "there/src/old"]);
    let kept = ["b", "old", "src/", "src/a", "src/old"];
    for (options, target) in [(&[][..], "there"), (&["--delete"], "there"), (&["-n"], "empty")] {
        let copied = copy(dir, &[options, &["missing", "src", "b", target]].concat());
        assert_eq!(copied.status.code(), Some(23), "{copied:?}");
        let stderr = message(&copied);
        assert!(stderr.contains("missing: No such file or directory"), "{stderr}");
        let undeleted = stderr.contains("nothing was deleted, because the sender left out");
        assert_eq!(undeleted, options == ["--delete"], "{stderr}");
    }
    assert_eq!(below(&dir.join("there")), kept);
    if let Some(synced) = rsync(dir, &["--delete", "missing", "src", "b", "there"]) {
        assert_eq!(synced.status.code(), Some(23), "{synced:?}");
    }
}

#[test]
fn an_error_names_each_source_if_all_are_missing() {
    let scratch = tempfile::tempdir().unwrap();
    for options in [&[][..], &["--delete"], &["-n"]] {
        let arguments = [options, &["--json", "gone", "lost", "there"]].concat();
        let copied = copy(scratch.path(), &arguments);
        assert_eq!(copied.status.code(), Some(1), "{copied:?}");
        let summary: serde_json::Value = serde_json::from_slice(&copied.stdout).unwrap();
        assert_eq!(
            (&summary["failed"], summary["failures"].as_array().unwrap().len()),
            (&2.into(), 2)
        );
        for name in ["gone", "lost"] {
            assert!(message(&copied).contains(&format!("{name}: No such file")), "{copied:?}");
        }
        assert!(!scratch.path().join("there").exists());
    }
}

/// If a file is left alone, its second name has no file to link to.
#[test]
fn a_dry_run_rejects_a_hard_link_as_the_real_run_does() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write(dir, &["src/a", "there/src/a"]);
    fs::write(dir.join("there/src/a"), "another").unwrap();
    fs::hard_link(dir.join("src/a"), dir.join("src/b")).unwrap();
    for options in [&["-n", "--keep-existing"][..], &["--keep-existing"]] {
        let copied = copy(dir, &[options, &["src", "there"]].concat());
        assert_eq!(copied.status.code(), Some(23), "{copied:?}");
        let why = "src/b: a hard link to a file that did not arrive; send it by itself";
        assert!(message(&copied).contains(why), "{copied:?}");
    }
}

#[test]
fn a_verbose_copy_lists_each_file_that_it_writes() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    // Each file but one contains its own name: 8 and 7 bytes.
    write(dir, &["src/a/bc", "src/d/e"]);
    fs::write(dir.join("src/empty"), "").unwrap();
    let named = |options: &[&str]| {
        let copied = copy(dir, &[options, &["src", "there"]].concat());
        assert!(copied.status.success(), "{copied:?}");
        let stderr = message(&copied);
        ["src/a/bc (8 B)", "src/d/e (7 B)", "src/empty (0 B)"].map(|line| stderr.contains(line))
    };
    assert_eq!(named(&["-v", "-n"]), [false; 3]);
    assert_eq!(named(&["-v"]), [true; 3]);
    fs::write(dir.join("src/d/e"), "changed").unwrap();
    fs::remove_file(dir.join("there/src/d/e")).unwrap();
    assert_eq!(named(&["-v"]), [false, true, false], "unchanged files are not named");
    fs::remove_dir_all(dir.join("there")).unwrap();
    assert_eq!(named(&[]), [false; 3]);
}
