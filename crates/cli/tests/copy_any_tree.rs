//! Copies random trees over random trees with `sweetspot copy`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use sweetspot_path::Random;

/// Lengths around a page and around a piece of 256 KiB.
const LENGTHS: [usize; 8] = [0, 1, 4095, 4097, 262_143, 262_144, 262_145, 600_000];
/// Few names, so that most names of one tree are also in the other.
const NAMES: [&str; 6] = ["a", "b", "c d", "é", "e", "f"];

/// The properties of an entry that a copy must keep.
#[derive(Debug, PartialEq)]
enum Kept {
    Directory,
    Link(std::path::PathBuf),
    File(Vec<u8>),
}

fn draw(random: &mut Random, choices: usize) -> usize {
    random.whole((0, choices as u64 - 1)) as usize
}

/// Fills the new directory `path`.
fn grow(random: &mut Random, path: &Path, depth: usize) {
    fs::create_dir(path).unwrap();
    for name in NAMES {
        let entry = path.join(name);
        match draw(random, 10) {
            0..=2 => {}
            3 if depth < 2 => grow(random, &entry, depth + 1),
            4 => symlink(NAMES[draw(random, NAMES.len())], &entry).unwrap(),
            // The first name may not be a file.
            5 if fs::hard_link(path.join(NAMES[0]), &entry).is_ok() => {}
            _ => {
                let byte = draw(random, 3) as u8;
                fs::write(&entry, vec![byte; LENGTHS[draw(random, LENGTHS.len())]]).unwrap();
            }
        }
    }
}

/// Everything below `root`, by relative path.
fn kept(root: &Path) -> BTreeMap<String, Kept> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let kept = if kind.is_dir() {
                pending.push(path.clone());
                Kept::Directory
            } else if kind.is_symlink() {
                Kept::Link(fs::read_link(&path).unwrap())
            } else {
                Kept::File(fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(root).unwrap().display().to_string(), kept);
        }
    }
    found
}

/// The names of each file with several names.
fn linked(root: &Path) -> Vec<Vec<String>> {
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (name, kept) in kept(root) {
        if matches!(kept, Kept::File(_)) {
            names.entry(fs::metadata(root.join(&name)).unwrap().ino()).or_default().push(name);
        }
    }
    let mut several: Vec<_> = names.into_values().filter(|names| names.len() > 1).collect();
    several.sort();
    several
}

fn copy(directory: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(options).args(["new/", "old"]).current_dir(directory);
    command.output().unwrap()
}

/// Contents are compared (--checksum), because both trees are made within the granularity of file times. A directory with
/// entries is not replaced by anything else (exit code 23), so that its files are kept.
#[test]
fn a_copy_over_any_tree_equals_its_source_and_is_idempotent() {
    let mut whole = 0;
    for seed in 1..=40 {
        let scratch = tempfile::tempdir().unwrap();
        let (dir, mut random) = (scratch.path(), Random::new(seed));
        grow(&mut random, &dir.join("new"), 0);
        grow(&mut random, &dir.join("old"), 0);
        let before = kept(&dir.join("old"));
        assert!(matches!(copy(dir, &["-n", "--checksum", "--delete"]).status.code(), Some(0 | 23)));
        assert_eq!(kept(&dir.join("old")), before, "seed {seed}: a dry run");
        let copied = copy(dir, &["--checksum", "--delete"]);
        match copied.status.code() {
            Some(0) => {
                assert_eq!(kept(&dir.join("old")), kept(&dir.join("new")), "seed {seed}");
                assert_eq!(linked(&dir.join("old")), linked(&dir.join("new")), "seed {seed}");
                let again = copy(dir, &["-n", "--checksum", "--delete"]);
                assert_eq!(again.stdout, b"", "seed {seed}: {again:?}");
                whole += 1;
            }
            Some(23) => {
                let stays = |(name, kept): (String, Kept)| {
                    let is = fs::symlink_metadata(dir.join("old").join(&name));
                    assert!(kept != Kept::Directory || is.is_ok_and(|is| is.is_dir()), "{name}");
                };
                before.into_iter().for_each(stays);
            }
            _ => panic!("seed {seed}: {copied:?}"),
        }
    }
    assert!(whole >= 10, "{whole} of 40 drawn pairs had no directory in the way");
}
