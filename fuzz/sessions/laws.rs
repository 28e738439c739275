//! Invariants after a session, whatever its peer sent.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use super::fixture::{Client, QUOTA, fixture};

/// Attributes that a session may try to set.
pub const ATTRIBUTES: [&[u8]; 4] =
    [b"user.x", b"trusted.x", b"security.capability", b"system.posix_acl_access"];
/// The file system's overhead for all files together.
const OVERHEAD: u64 = 64 << 10;

/// Checks everything in the client's directory.
pub fn check(client: Client) {
    let mut blocks = 0;
    for path in all(&client.directory()) {
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_symlink() {
            stays_inside(&path, &client.directory());
            continue;
        }
        let mode = metadata.permissions().mode() & 0o7777;
        assert_eq!(mode & 0o7000, 0, "{path:?} is set-id or sticky: {mode:o}");
        let attributes = attributes(&path);
        assert!(attributes.is_empty(), "{path:?} has attributes: {attributes:?}");
        blocks += metadata.blocks() * 512;
    }
    let bounded = client != Client::Unbounded;
    assert!(
        !bounded || blocks <= QUOTA + OVERHEAD,
        "the directory takes {blocks} bytes of a quota of {QUOTA}"
    );
    let outside = fixture().scratch.join("secret");
    let kept = fs::read(outside).unwrap() == super::fixture::SECRET;
    assert!(kept, "a file outside was changed");
}

/// All paths below `directory`.
fn all(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = pending.pop() {
        // A directory without read permission; only root can list it.
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                pending.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

/// The attributes among [`ATTRIBUTES`] that a file has.
fn attributes(path: &Path) -> Vec<String> {
    let mut names = vec![0u8; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|byte| *byte == 0);
    let ours = names.filter(|name| ATTRIBUTES.contains(name));
    ours.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Checks that a link's target is below the client's directory.
fn stays_inside(link: &Path, directory: &Path) {
    let target = fs::read_link(link).unwrap();
    let above = link.parent().unwrap().strip_prefix(directory).unwrap().components().count();
    let mut depth = above as i64;
    for part in target.components() {
        depth += match part {
            Component::Normal(_) => 1,
            Component::ParentDir => -1,
            Component::CurDir => 0,
            Component::RootDir | Component::Prefix(_) => i64::MIN / 2,
        };
        assert!(depth >= 0, "{link:?} leads outside, to {target:?}");
    }
}
