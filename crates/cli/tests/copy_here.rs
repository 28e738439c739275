//! Tests `sweetspot copy` on one host: dry runs, existing files, and devices at the destination.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use sweetspot_linux::clock;
use sweetspot_linux::signals::Signal;

/// Runs `sweetspot copy` in `directory`.
fn copy(directory: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(arguments).current_dir(directory);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// A program's exit status and output.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn ends(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} in {self:?}");
        }
    }
}

/// A directory with a source `src` of these files, with an old modification time.
fn source(files: &[(&str, &str)]) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    write(&scratch.path().join("src"), files);
    scratch
}

fn write(directory: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(directory).unwrap();
    for (name, content) in files {
        fs::write(directory.join(name), content).unwrap();
        let file = fs::File::options().write(true).open(directory.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// A second reader would get nothing, and overwrite its file with nothing.
#[test]
fn stdin_cannot_be_used_twice() {
    let scratch = source(&[("a.txt", "precious")]);
    for list in ["-", "/dev/stdin"] {
        let ended = copy(scratch.path(), &["--files-from", list, "-", "src/a.txt"]);
        ended.ends(2, &["standard input can be used only once"]);
        assert_eq!(read(scratch.path().join("src/a.txt")), "precious");
    }
}

#[test]
fn neither_a_file_nor_a_link_replaces_a_pipe_socket_or_device() {
    let scratch = source(&[("f", "1"), ("whole", "2")]);
    let (dir, source) = (scratch.path(), scratch.path().join("src"));
    symlink("f", source.join("link")).unwrap();
    fs::hard_link(source.join("whole"), source.join("whole-too")).unwrap();
    let destination = dir.join("there/src");
    fs::create_dir_all(&destination).unwrap();
    let names = ["f", "link", "whole-too"];
    names.iter().for_each(|name| mkfifo(&destination.join(name)));
    let message = ["src/f is a pipe", "src/link is a pipe", "src/whole-too is a pipe"];
    let ended = copy(dir, &["src", "there"]);
    ended.ends(23, &message);
    assert!(!ended.stderr.contains("more"), "{ended:?}");
    assert_eq!(read(destination.join("whole")), "2");
    copy(dir, &["-n", "src/f", "there/src"]).ends(1, &["f is a pipe and was left unchanged"]);
    for name in names {
        assert!(destination.join(name).symlink_metadata().unwrap().file_type().is_fifo(), "{name}");
    }
    // Both as DESTINATION and through a link, such as /dev/stdout.
    let socket = UnixListener::bind(dir.join("socket")).unwrap();
    symlink("socket", dir.join("way")).unwrap();
    for to in ["socket", "way"] {
        let named = format!("{to} is a socket and was left unchanged; name another file");
        copy(dir, &["src/f", to]).ends(1, &[&named]);
        copy(dir, &["-n", "src/f", to]).ends(1, &[&named]);
    }
    assert!(dir.join("way").is_symlink());
    drop(socket);
    if Command::new("mknod").arg(dir.join("null")).args(["c", "1", "3"]).status().unwrap().success()
    {
        copy(dir, &["src/f", "null"]).ends(1, &["null is a device and was left unchanged"]);
        let kind = fs::symlink_metadata(dir.join("null")).unwrap().file_type();
        assert!(kind.is_char_device());
    } else {
        sweetspot_testing::skipped("a device is tested as root only");
    }
}

/// Two files and a second name of one of them, each with a directory in its place.
#[test]
fn a_copy_that_fails_entirely_names_each_failure() {
    let scratch = source(&[("a", "1"), ("b", "22")]);
    let (dir, source) = (scratch.path(), scratch.path().join("src"));
    fs::hard_link(source.join("b"), source.join("c")).unwrap();
    for name in ["a", "b", "c"] {
        fs::create_dir_all(dir.join("there").join(name).join("full")).unwrap();
    }
    let ended = copy(dir, &["--json", "src/", "there"]);
    ended.ends(1, &["nothing was transferred: 3 failed"]);
    let summary: serde_json::Value = serde_json::from_str(ended.stdout.trim()).unwrap();
    assert_eq!(
        (summary["failed"].as_u64(), summary["failures"].as_array().unwrap().len()),
        (Some(3), 3)
    );
    for name in ["a", "b", "c"] {
        let named = |line: &&str| line.starts_with(&format!("sweetspot: there/{name}"));
        assert_eq!(ended.stderr.lines().filter(named).count(), 1, "{name} in {ended:?}");
    }
}

#[test]
fn a_dry_run_skips_a_pipe_and_lists_the_rest() {
    let scratch = source(&[("f", "1"), ("g", "22")]);
    mkfifo(&scratch.path().join("p"));
    let dry = copy(scratch.path(), &["-n", "src", "p", "there"]);
    dry.ends(
        23,
        &[
            "p is a pipe and was left out",
            "dry run, would write 2 files (3 B), make 1 directory, 1 would fail",
        ],
    );
    let listed = ["src (directory)", "src/f (1 B)", "src/g (2 B)"];
    assert_eq!(dry.stdout, listed.map(|name| format!("would copy {name}\n")).concat());
    assert!(!scratch.path().join("there").exists());
}

/// Entries at the destination with the name of a skipped pipe or socket are kept, whatever they are.
/// Everything else that the source lacks is deleted.
#[test]
fn pipes_and_sockets_in_a_tree_are_skipped_without_blocking_delete() {
    let scratch = source(&[("f", "1")]);
    let (dir, destination) = (scratch.path(), scratch.path().join("there/src"));
    ["a", "b", "c"].iter().for_each(|name| mkfifo(&dir.join("src").join(name)));
    let socket = UnixListener::bind(dir.join("src/s")).unwrap();
    write(&destination, &[("a", "kept"), ("old", "2")]);
    write(&destination.join("b"), &[("kept", "3")]);
    let arguments = ["--delete", "src", "there"];
    let skipped = "skipped pipes, sockets and devices: src/a, src/b, src/c and 1 more";
    let dry = copy(dir, &[&["-n"][..], &arguments].concat());
    dry.ends(0, &[skipped]);
    assert_eq!(dry.stdout, "would copy src/f (1 B)\nwould delete src/old\n");
    copy(dir, &arguments).ends(0, &[skipped, "1 deleted"]);
    assert_eq!(
        (read(destination.join("a")), read(destination.join("b/kept"))),
        ("kept".into(), "3".into())
    );
    assert_eq!(read(destination.join("f")), "1");
    assert!(!destination.join("old").exists());
    copy(dir, &arguments).ends(0, &["nothing to send; the receiver is up to date", skipped]);
    let quiet = copy(dir, &["-q", "src", "there"]);
    assert!(quiet.code == Some(0) && quiet.stderr.is_empty(), "{quiet:?}");
    let json: serde_json::Value =
        serde_json::from_str(&copy(dir, &["--json", "src", "there"]).stdout).unwrap();
    assert_eq!(json["skipped"], serde_json::json!(["src/a", "src/b", "src/c", "src/s"]));
    drop(socket);
    // Here, the user named the pipe explicitly.
    copy(dir, &["src/a", "elsewhere"]).ends(1, &["src/a is a pipe"]);
}

/// Root can write anywhere, so a directory in the file's place is used instead of one that is not writable.
#[test]
fn an_error_names_the_directory_in_the_place_of_a_copy() {
    let scratch = source(&[("f", "1")]);
    fs::create_dir_all(scratch.path().join("there/f/x")).unwrap();
    let named = "there/f is a directory and was left unchanged";
    copy(scratch.path(), &["src/f", "there"]).ends(1, &[named]);
}

/// Two of three files differ, and only one of them in length: only a comparison of contents finds the other.
#[test]
fn a_checksum_dry_run_lists_files_whose_contents_differ() {
    let scratch = source(&[("f", "BBB"), ("longer", "1234"), ("same", "x")]);
    let destination = scratch.path().join("there/src");
    write(&destination, &[("f", "AAA"), ("longer", "1"), ("same", "x")]);
    let dry = copy(scratch.path(), &["-n", "--checksum", "src", "there"]);
    dry.ends(0, &["dry run, would write 2 files (7 B)"]);
    let mut lines: Vec<_> = dry.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["would copy src/f (3 B)", "would copy src/longer (4 B)"]);
    let json = copy(scratch.path(), &["-n", "--checksum", "--json", "src", "there"]);
    let summary: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let counts = serde_json::json!({ "written": 0, "unchanged": 1, "updated": 0, "failed": 0, "deleted": 0 });
    assert_eq!((&summary["files"], &summary["dry_run"]), (&counts, &true.into()), "{summary}");
    assert_eq!(summary["would_move"].as_array().map(Vec::len), Some(2), "{summary}");
    let changes = summary["would_change"].as_array().unwrap();
    let change = |path: &str| changes.iter().find(|change| change["path"] == path).unwrap();
    for (path, bytes) in [("src/f", 3), ("src/longer", 4)] {
        let expected = serde_json::json!({ "path": path, "kind": "file", "bytes": bytes });
        assert_eq!(change(path), &expected, "{summary}");
    }
    assert_eq!(changes.len(), 2, "{summary}");
    // f has 3 B, and longer has 4 B.
    let would = serde_json::json!({
        "write": 2, "files": 2, "directories": 0, "links": 0, "update": 0, "delete": 0, "bytes": 7
    });
    assert_eq!(summary["would"], would, "{summary}");
    assert_eq!(read(destination.join("f")), "AAA");
}

#[test]
fn a_checksum_dry_run_omits_hard_links_that_already_exist() {
    let scratch = source(&[("f", "one")]);
    fs::hard_link(scratch.path().join("src/f"), scratch.path().join("src/g")).unwrap();
    copy(scratch.path(), &["src", "there"]).ends(0, &[]);
    let dry = copy(scratch.path(), &["-n", "--checksum", "src", "there"]);
    dry.ends(0, &["dry run, would change nothing"]);
    assert_eq!(dry.stdout, "");
}

#[test]
fn options_may_stand_between_the_paths() {
    let directory = source(&[("a", "a")]);
    copy(directory.path(), &["src/", "-n", "dst"]).ends(0, &["would write 1 file (1 B)"]);
    assert!(!directory.path().join("dst").exists(), "a dry run");
    copy(directory.path(), &["src/", "--checksum", "dst"]).ends(0, &[]);
    assert_eq!(read(directory.path().join("dst/a")), "a");
    copy(directory.path(), &["src/"]).ends(2, &["DESTINATION"]);
}

#[test]
fn a_dry_run_neither_deletes_nor_claims_to_have_deleted() {
    let scratch = source(&[]);
    write(&scratch.path().join("there"), &[("old", "1")]);
    let dry = copy(scratch.path(), &["-n", "--delete", "src/", "there/"]);
    dry.ends(0, &["dry run, would delete 1 entry"]);
    assert_eq!(dry.stdout, "would delete old\n");
    assert!(!dry.stderr.contains("1 deleted"), "{dry:?}");
    let json = copy(scratch.path(), &["-n", "--delete", "--json", "src/", "there/"]);
    let summary: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&summary["files"]["deleted"], &summary["deleted"][0]), (&0.into(), &"old".into()));
    assert_eq!(read(scratch.path().join("there/old")), "1");
}

#[test]
fn keeping_existing_files_is_not_a_failure() {
    let scratch = source(&[("f", "new"), ("g", "2"), ("pipe", "3")]);
    let (dir, destination) = (scratch.path(), scratch.path().join("there/src"));
    symlink("f", dir.join("src/link")).unwrap();
    fs::hard_link(dir.join("src/g"), dir.join("src/name")).unwrap();
    write(&destination, &[("f", "old"), ("name", "mine")]);
    symlink("elsewhere", destination.join("link")).unwrap();
    mkfifo(&destination.join("pipe"));
    let dry = copy(dir, &["-n", "--keep-existing", "src", "there"]);
    dry.ends(0, &["dry run"]);
    assert_eq!(dry.stdout, "would copy src/g (1 B)\n");
    copy(dir, &["--keep-existing", "src", "there"]).ends(0, &["src: 1 file, 4 left alone"]);
    copy(dir, &["--keep-existing", "src", "there"]).ends(0, &["left alone"]);
    assert_eq!(
        (read(destination.join("f")), read(destination.join("g"))),
        ("old".into(), "2".into())
    );
    assert_eq!(read(destination.join("name")), "mine");
    assert_eq!(fs::read_link(destination.join("link")).unwrap(), Path::new("elsewhere"));
}

#[test]
fn an_empty_pattern_is_a_usage_error() {
    let scratch = source(&[("f", "1")]);
    for exclude in [&["--exclude", ""][..], &["--exclude="], &["--exclude", "a", "--exclude", ""]] {
        let ended = copy(scratch.path(), &[exclude, &["src", "there"]].concat());
        ended.ends(2, &["--exclude", "it is empty; is a variable unset?"]);
    }
    assert!(!scratch.path().join("there").exists());
}

#[test]
fn errors_name_the_file_the_reason_and_a_remedy_that_copy_has() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    fs::write(dir.join("file"), "").unwrap();
    fs::write(dir.join("list"), "f\n../outside\n").unwrap();
    let tree = ["src", "file"];
    copy(dir, &tree)
        .ends(1, &["file: the target exists and is not a directory", "or name another target"]);
    let nowhere = copy(dir, &["src", "no/such/place"]);
    nowhere.ends(1, &["no/such/place: its parent directory no/such does not exist"]);
    let list = copy(dir, &["--files-from", "list", "src/", "there"]);
    list.ends(2, &["list: ../outside: it is not below the source"]);
    for ended in [copy(dir, &tree), nowhere, list] {
        assert!(!ended.stderr.contains("--name"), "{ended:?}");
        assert!(!ended.stderr.contains("the other end"), "both are here: {ended:?}");
    }
}

#[test]
fn a_directory_is_copied_whole_with_or_without_the_scp_option_r() {
    for (options, target) in [(&[][..], "plain"), (&["-r"][..], "with-r")] {
        let scratch = source(&[("f", "1")]);
        write(&scratch.path().join("src/inner"), &[("g", "2")]);
        let arguments = [options, &["src", target]].concat();
        copy(scratch.path(), &arguments).ends(0, &[]);
        assert_eq!(read(scratch.path().join(target).join("src/inner/g")), "2");
    }
}

#[test]
fn a_directory_is_neither_copied_into_itself_nor_deleted_by_its_copy() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    fs::create_dir(dir.join("src/inner")).unwrap();
    for arguments in [&["src", "src"][..], &["src/", "src/inner"], &["src", "src/new/er"]] {
        copy(dir, arguments).ends(2, &["cannot copy", "into itself"]);
    }
    copy(dir, &["src", "src"]).ends(2, &["the destination is the source"]);
    copy(dir, &["src/", "src"]).ends(2, &["src/ and src are the same directory"]);
    copy(dir, &["--delete", "src/", "."]).ends(2, &["--delete would remove it"]);
    for to in ["src/f", "src", "src/../src/"] {
        copy(dir, &["src/f", to]).ends(2, &["src/f and its destination are the same file"]);
    }
    assert_eq!(read(dir.join("src/f")), "1");
    assert!(!dir.join("src/src").exists() && !dir.join("src/new").exists());
    // An excluded name may be inside the source.
    copy(dir, &["--exclude", "inner", "src/", "src/inner"]).ends(0, &[]);
    assert_eq!(read(dir.join("src/inner/f")), "1");
}

/// As in `rsync -a`. An existing directory keeps its mode, because it may be a home directory.
#[test]
fn the_target_directory_gets_the_source_time_and_if_new_its_mode() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    set_mode(&dir.join("src"), 0o700);
    fs::File::open(dir.join("src")).unwrap().set_modified(long_ago).unwrap();
    fs::create_dir(dir.join("there")).unwrap();
    set_mode(&dir.join("there"), 0o750);
    let time = |name: &str| fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    for (target, expected) in [("new", 0o700), ("there", 0o750)] {
        for more in [&["-n"][..], &[], &[]] {
            copy(dir, &[&["src/", target], more].concat()).ends(0, &[]);
        }
        assert_eq!((time(target), mode(&dir.join(target))), (long_ago, expected), "{target}");
    }
    // With --keep-existing, an existing directory keeps its time.
    write(&dir.join("kept"), &[("f", "2")]);
    let before = time("kept");
    copy(dir, &["--keep-existing", "src/", "kept"]).ends(0, &["was left alone"]);
    assert_eq!(time("kept"), before);
}

#[test]
fn sources_with_the_same_name_do_not_overwrite_each_other() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    write(&dir.join("other"), &[("f", "2")]);
    copy(dir, &["src/f", "other/f", "there"]).ends(2, &["several sources are named f"]);
    assert!(!dir.join("there").exists());
    write(&dir.join("more/src"), &[("f", "22"), ("g", "3")]);
    copy(dir, &["src", "more/src", "there"]).ends(2, &["several sources are named src"]);
    assert!(!dir.join("there").exists());
    // The contents of both sources go into one directory, with the same result in each run.
    for _ in 0..2 {
        let left_out = "more/src/f: another source has this name; it was left out";
        copy(dir, &["src/", "more/src/", "there"]).ends(23, &[left_out]);
        let destination = ["f", "g"].map(|name| read(dir.join("there").join(name)));
        assert_eq!(destination, ["1", "3"]);
    }
}

/// 10 MB take 80 s at 1 Mbit/s.
#[test]
fn an_interrupted_copy_says_that_its_data_is_kept() {
    if sweetspot_testing::is_ignored(Signal::INTERRUPT.number()) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    fs::write(&source, vec![7; 10_000_000]).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(["--bwlimit", "1Mbit/s", "--no-compress"]).args([&source, &target]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut message = String::new();
    // This line shows that the transfer has begun.
    stderr.read_line(&mut message).unwrap();
    Signal::INTERRUPT.send(child.id());
    stderr.read_to_string(&mut message).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INTERRUPT.number()), "{message}");
    let words = "interrupted; received data is kept, and the same command transfers the rest";
    assert!(message.contains(words), "{message}");
}

/// Waits this long.
fn pause(milliseconds: u64) {
    let time = sweetspot_units::Duration::from_millis(milliseconds);
    sweetspot_linux::clock::sleep_until(sweetspot_linux::clock::now() + time);
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// 10 MB take 4 s at 20 Mbit/s.
#[test]
fn repeating_an_interrupted_copy_completes_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("src"), scratch.path().join("new"));
    fs::create_dir(&source).unwrap();
    let content: Vec<u8> = (0..10_000_000u32).map(|n| (n / 1000) as u8).collect();
    fs::write(source.join("f"), &content).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(["--bwlimit", "20Mbit/s", "--no-compress"]).args([&source, &target]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let part = || {
        let copied = fs::read_dir(target.join("src")).ok()?;
        let mut lengths = copied.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        lengths.find(|length| *length > 0)
    };
    while part().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        clock::sleep_until(clock::now() + sweetspot_units::Duration::from_millis(5));
    }
    Signal::TERMINATE.send(child.id());
    assert!(!child.wait().unwrap().success());
    assert!(!target.join("src/f").exists());
    for bytes_at_most in [content.len() as u64 - 1, 0] {
        let again = copy(scratch.path(), &["--json", "src", "new"]);
        again.ends(0, &[]);
        let outcome: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
        assert!(outcome["bytes"].as_u64().unwrap() <= bytes_at_most, "{outcome}");
        assert_eq!(names(&target), ["src"], "nothing is nested");
        assert_eq!(names(&target.join("src")), ["f"], "nothing unfinished remains");
        assert!(fs::read(target.join("src/f")).unwrap() == content);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_mode_change_alone_is_copied_and_counted() {
    let scratch = source(&[("f", "1"), ("g", "2")]);
    let dir = scratch.path();
    copy(dir, &["src", "there"]).ends(0, &[]);
    let modes = || ["there/src", "there/src/f", "there/src/g"].map(|path| mode(&dir.join(path)));
    let before = modes();
    set_mode(&dir.join("src"), 0o700);
    set_mode(&dir.join("src/f"), 0o600);
    let dry = copy(dir, &["-n", "src", "there"]);
    dry.ends(0, &["dry run, would update the attributes of 2 entries"]);
    let listed = ["src", "src/f"].map(|name| format!("would copy {name} (attributes only)\n"));
    assert_eq!(dry.stdout, listed.concat());
    copy(dir, &["--keep-existing", "src/", "there/src"]).ends(0, &["was left alone"]);
    assert_eq!(modes(), before, "neither a dry run nor --keep-existing changes anything");
    copy(dir, &["src", "there"]).ends(0, &["attributes of 2 entries updated, 1 unchanged"]);
    assert_eq!(modes(), [0o700, 0o600, before[2]]);
    copy(dir, &["src", "there"]).ends(0, &["the receiver is up to date"]);
    // Also if contents are compared.
    set_mode(&dir.join("src/g"), 0o640);
    copy(dir, &["--checksum", "src", "there"]).ends(0, &["attributes of 1 entry updated"]);
    assert_eq!(modes(), [0o700, 0o600, 0o640]);
}

#[test]
fn extended_attributes_of_an_existing_file_are_updated() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    let set = |path: &str, attribute: &str| {
        let code = format!("import os; os.setxattr('{path}', '{attribute}', b'x')");
        let python = Command::new("python3").args(["-c", &code]).current_dir(dir).output();
        python.is_ok_and(|output| output.status.success())
    };
    let list = |path: &str| {
        let code = format!("import os; print(sorted(os.listxattr('{path}')))");
        let output = Command::new("python3").args(["-c", &code]).current_dir(dir).output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
    };
    if !set("src/f", "user.kept") {
        sweetspot_testing::skipped(
            "no extended attributes in the temporary directory, or no python3",
        );
        return;
    }
    copy(dir, &["--xattrs", "src", "there"]).ends(0, &[]);
    set("src/f", "user.new");
    set("there/src/f", "user.old");
    copy(dir, &["src", "there"]).ends(0, &["the receiver is up to date"]);
    assert_eq!(list("there/src/f"), "['user.kept', 'user.old']", "only on request");
    // Also for a file without write permission.
    for path in ["src/f", "there/src/f"] {
        set_mode(&dir.join(path), 0o444);
    }
    let arguments = ["--xattrs", "src", "there"];
    let dry = copy(dir, &[&["-n"][..], &arguments].concat());
    assert_eq!(dry.stdout, "would copy src/f (attributes only)\n");
    copy(dir, &arguments).ends(0, &["attributes of 1 entry updated"]);
    assert_eq!(list("there/src/f"), "['user.kept', 'user.new']");
    assert_eq!(mode(&dir.join("there/src/f")), 0o444);
    copy(dir, &arguments).ends(0, &["the receiver is up to date"]);
}

#[test]
fn a_receiver_with_a_failed_file_is_not_reported_up_to_date() {
    let scratch = source(&[("f", "1"), ("g", "2")]);
    let dir = scratch.path();
    copy(dir, &["src", "there"]).ends(0, &[]);
    fs::remove_file(dir.join("there/src/f")).unwrap();
    fs::create_dir_all(dir.join("there/src/f/inner")).unwrap();
    let failed = copy(dir, &["src", "there"]);
    failed.ends(23, &["src: 1 unchanged, 1 failed\n", "f is a directory"]);
    assert!(!failed.stderr.contains("up to date"), "{failed:?}");
}

#[test]
fn a_dry_run_lists_links_and_new_directories() {
    let scratch = source(&[("f", "1")]);
    let dir = scratch.path();
    copy(dir, &["src/", "there"]).ends(0, &[]);
    fs::create_dir(dir.join("src/empty")).unwrap();
    fs::hard_link(dir.join("src/f"), dir.join("src/hard")).unwrap();
    symlink("f", dir.join("src/soft")).unwrap();
    let arguments = ["src/", "there"];
    let dry = |options: &[&str]| copy(dir, &[&["-n"], options, &arguments].concat()).stdout;
    let lines = |names: &[&str]| {
        names.iter().map(|name| format!("would copy {name}\n")).collect::<String>()
    };
    let all = ["empty (directory)", "hard (hard link)", "soft (symbolic link)"];
    assert_eq!(dry(&[]), lines(&all));
    let summary: serde_json::Value = serde_json::from_str(&dry(&["--json"])).unwrap();
    let counted =
        ["write", "files", "directories", "links"].map(|member| &summary["would"][member]);
    assert_eq!(counted, [3, 0, 1, 2], "{summary}");
    assert_eq!(names(&dir.join("there")), ["f"]);
    copy(dir, &arguments).ends(0, &[]);
    assert_eq!(dry(&[]), "", "all of it is there");
    // A link with another target, and a second name that became a separate file.
    fs::remove_file(dir.join("src/soft")).unwrap();
    symlink("hard", dir.join("src/soft")).unwrap();
    fs::remove_file(dir.join("there/hard")).unwrap();
    write(&dir.join("there"), &[("hard", "1")]);
    assert_eq!(dry(&[]), lines(&all[1..]));
    assert_eq!(dry(&["--keep-existing"]), "");
}

/// A file of one piece and a file of several, to which a program appends a line every few milliseconds.
#[test]
fn a_growing_file_arrives_with_a_length_that_it_once_had() {
    let scratch = source(&[]);
    let dir = scratch.path();
    let paths = ["src/short", "src/long"].map(|name| dir.join(name));
    let line = "a line of 32 bytes, and no more\n";
    fs::write(&paths[0], line.repeat(100)).unwrap();
    fs::write(&paths[1], line.repeat(30_000)).unwrap();
    let lengths = [100, 30_000].map(|lines| lines * line.len());
    let finished = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !finished.load(std::sync::atomic::Ordering::Relaxed) {
                for path in &paths {
                    let mut log = fs::File::options().append(true).open(path).unwrap();
                    std::io::Write::write_all(&mut log, line.as_bytes()).unwrap();
                }
                pause(3);
            }
        });
        let copied = copy(dir, &["src", "there"]);
        finished.store(true, std::sync::atomic::Ordering::Relaxed);
        copied.ends(0, &["src/long grew during the transfer"]);
    });
    for (path, length) in paths.iter().zip(lengths) {
        let destination = dir.join("there").join(path.strip_prefix(dir).unwrap());
        let (arrived, now) = (fs::read(destination).unwrap(), fs::read(path).unwrap());
        assert!(arrived.len() >= length && now.starts_with(&arrived), "{}", path.display());
        assert_eq!(arrived.len() % line.len(), 0, "no write arrives in part");
    }
}

/// The interrupted transfer left part of 10 MB.
#[test]
fn a_resumed_copy_reports_the_resumed_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("f"), scratch.path().join("there"));
    fs::create_dir(&target).unwrap();
    fs::write(&source, vec![7; 10_000_000]).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.arg("copy").args(["--bwlimit", "20Mbit/s", "--no-compress"]).args([&source, &target]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let part = || {
        let mut parts = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap());
        parts.any(|entry| entry.metadata().is_ok_and(|part| part.len() > 1_000_000))
    };
    while !part() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        pause(5);
    }
    Signal::KILL.send(child.id());
    child.wait().unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&copy(scratch.path(), &["--json", "f", "there"]).stdout).unwrap();
    let [bytes, resumed] = ["bytes", "resumed_bytes"].map(|name| json[name].as_u64().unwrap());
    assert_eq!(bytes + resumed, 10_000_000, "{json}");
    assert!(resumed > 0, "{json}");
}

#[test]
fn a_copy_fails_if_its_result_cannot_be_written_to_stdout() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        sweetspot_testing::skipped("there is no /dev/full here");
        return;
    };
    let scratch = source(&[("f", "1")]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(["copy", "--json", "src", "there"]).current_dir(scratch.path()).stdout(full);
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot write to standard output"), "{message}");
    assert!(!message.contains("os error"), "{message}");
    assert_eq!(read(scratch.path().join("there/src/f")), "1");
}

/// Two names of one file, and a directory: two entries of `src` lose mode bits.
#[test]
fn special_mode_bits_are_dropped_and_counted() {
    let scratch = source(&[("tool", "1"), ("plain", "2")]);
    let source = scratch.path().join("src");
    fs::hard_link(source.join("tool"), source.join("same")).unwrap();
    fs::create_dir(source.join("shared")).unwrap();
    fs::set_permissions(source.join("tool"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(source.join("shared"), fs::Permissions::from_mode(0o2755)).unwrap();
    let line = "set-user-ID, set-group-ID or sticky bits of 2 entries are not kept";
    copy(scratch.path(), &["src", "there"]).ends(0, &[line]);
    let mode = |name| fs::metadata(scratch.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("there/src/tool") & 0o7000, 0);
    let json = copy(scratch.path(), &["--json", "src", "there"]);
    let summary: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(summary["special_bits_dropped"], 2, "{summary}");
    let quiet = copy(scratch.path(), &["-q", "src", "there"]);
    assert!(!quiet.stderr.contains("sticky"), "{quiet:?}");
}
