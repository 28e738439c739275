//! Content that arrives before its entry is answered affects only the duration.

use std::fs::File;

use sweetspot_protocol::record::Answer;

use super::*;

/// Keeps the messages to a sender.
#[derive(Default)]
struct SentRecords(Mutex<Vec<Record>>);

impl Answers for SentRecords {
    fn send_record(&self, record: &Record) -> Result<()> {
        lock(&self.0).push(record.clone());
        Ok(())
    }
}

/// A file from an honest sender, and the state of the receiver's directory.
#[derive(Debug, Clone)]
struct Case {
    size: usize,
    /// The existing file: none, with other content, or with the same content and time.
    existing_bytes: usize,
    /// Number of pieces left by an interrupted transfer.
    left: u32,
    replace: bool,
    checksum: bool,
    dry_run: bool,
    quota: bool,
    /// Bytes of content sent early, before or after the entry is answered.
    early: usize,
    before: bool,
    /// Whether the source changed after that.
    changed: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let flags = proptest::collection::vec(any::<bool>(), 4);
    let unlikely = || (0u8..6).prop_map(|n| n == 0);
    let early = prop_oneof![1usize..40_000, Just(1), 200_000usize..300_000];
    (1..SIZES.len(), 0usize..3, 0u32..3, flags, unlikely(), unlikely(), early).prop_map(
        |(size, existing_bytes, left, flags, dry_run, quota, early)| Case {
            size,
            existing_bytes,
            left,
            replace: flags[0],
            checksum: flags[1],
            dry_run,
            quota,
            early,
            before: flags[2],
            changed: flags[3],
        },
    )
}

/// The names and contents in a directory.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    let mut all: Vec<_> = fs::read_dir(directory).unwrap().map(read).collect();
    all.sort();
    all
}

/// The outcome for a file: names and contents in the directory, answers, results, and counted bytes.
type Outcome = (Vec<(String, Vec<u8>)>, String, String, u64);

impl Case {
    fn content(&self, byte: u8) -> Vec<u8> {
        (0..SIZES[self.size]).map(|at| (at / 1000) as u8 ^ byte).collect()
    }

    /// Runs the case with or without early content.
    fn run(&self, with_early: bool) -> Outcome {
        let scratch = tempfile::tempdir().unwrap();
        let content = self.content(1);
        let entry = Entry {
            path: RelativePath::new("f").unwrap(),
            kind: EntryKind::File { size: content.len() as u64, sparse: false },
            mode: 0o644,
            modified: (1_700_000_000, 0),
            owner: None,
            attributes: Vec::new(),
        };
        if self.left > 0 && content.len() as u64 > PIECE_BYTES {
            let earlier = Case { replace: true, dry_run: false, quota: false, ..self.clone() };
            let files = earlier.files(scratch.path(), true);
            files.plan(0, vec![entry.clone()], &Deaf).unwrap();
            self.send(&files, &content, 0, &[], (self.left, false));
        }
        self.put_existing(&scratch.path().join("f"), &content);
        let (files, sent_records) =
            (self.files(scratch.path(), self.replace), SentRecords::default());
        let early = self.content(if self.changed { 2 } else { 1 });
        let length = self.early.min(piece_length(early.len() as u64, 0) as usize - 1);
        let early = if with_early { early[..length].to_vec() } else { Vec::new() };
        let take = || files.take_early(0, early.clone());
        if with_early && self.before {
            take();
        }
        files.plan(0, vec![entry], &sent_records).unwrap();
        if with_early && !self.before {
            take();
        }
        let sent_records = sent_records.0.into_inner().unwrap();
        let (mut skipped, mut known, mut has_end) = (None, Vec::new(), true);
        for record in &sent_records {
            match record {
                Record::Answers(answers) => match &answers[0] {
                    Answer::All => {
                        skipped = Some(if self.changed { 0 } else { early.len() });
                        // A sender sends no end record for one piece that is requested whole.
                        has_end = content.len() as u64 > PIECE_BYTES;
                    }
                    Answer::Different { .. } => skipped = Some(0),
                    _ => {}
                },
                Record::Hashes { hashes, .. } => known.extend(hashes.iter().copied()),
                other => panic!("{other:?}"),
            }
        }
        let open = !lock(&files.state).open.is_empty();
        match skipped.filter(|_| open) {
            Some(skipped) => self.send(&files, &content, skipped, &known, (u32::MAX, has_end)),
            // A file that is only compared ends without content.
            None if open => self.send(&files, &content, 0, &known, (0, true)),
            None => {}
        }
        let results = format!("{:?}", files.results());
        files.complete().unwrap();
        let count = files.summary().2.get();
        let state = lock(&files.state);
        assert!(state.early.is_empty() && state.open.is_empty(), "{self:?} {results}");
        drop(state);
        drop(files);
        (contents(scratch.path()), format!("{sent_records:?}"), results, count)
    }

    /// Puts the existing file in the place of `f`.
    fn put_existing(&self, f: &Path, content: &[u8]) {
        match self.existing_bytes {
            0 => {}
            1 => fs::write(f, "other").unwrap(),
            _ => {
                fs::write(f, content).unwrap();
                let file = File::options().write(true).open(f).unwrap();
                let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
                file.set_modified(at).unwrap();
            }
        }
    }

    fn files(&self, directory: &Path, replace: bool) -> IncomingFiles {
        // Less than most of the files need.
        let quotas = QuotaTable::default();
        let quota = self.quota.then(|| quotas.of(directory, Bytes::new(PIECE_BYTES / 2)).unwrap());
        let (checksum, dry_run) = (self.checksum, self.dry_run);
        incoming(directory, quota, Policy { replace, checksum, dry_run, ..REPLACING })
    }

    /// Sends the first `max` pieces that are not `known`, the first piece without its `skipped` bytes, and an end record if
    /// it `has_end`.
    fn send(
        &self,
        files: &IncomingFiles,
        content: &[u8],
        skipped: usize,
        known: &[PieceHash],
        (max, has_end): (u32, bool),
    ) {
        let (jobs, queued_jobs) = crossbeam_channel::unbounded();
        let count = pieces(content.len() as u64) as u32;
        let (mut hashes, mut sent) = (Vec::new(), 0);
        for (piece, bytes) in (0..count).zip(content.chunks(PIECE_BYTES as usize)) {
            let hash = piece_hash(piece, count == 1, bytes);
            hashes.push(hash);
            if known.get(piece as usize) == Some(&hash) || piece >= max {
                continue;
            }
            sent += 1;
            let bytes = if piece == 0 { &bytes[skipped..] } else { bytes };
            let header = PieceHeader { entry: 0, piece, hash, length: bytes.len() as u32 };
            jobs.send(Job::Piece(header, bytes.to_vec())).unwrap();
        }
        drop(jobs);
        files.work(&queued_jobs, &crossbeam_channel::unbounded().0).unwrap();
        if has_end {
            let hash = *root(&hashes).as_bytes();
            let size = content.len() as u64;
            files
                .take_end(&FileEnd { entry: 0, size, pieces_sent: sent, hash })
                .unwrap_or_default();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Early content affects only the duration: neither answers nor files, failures or counts, whatever exists already.
    #[test]
    fn early_content_does_not_change_the_outcome(case in case()) {
        prop_assert_eq!(case.run(true), case.run(false));
    }
}

/// Early content of an unwanted file is dropped with its answer.
#[test]
fn early_content_of_unwanted_files_is_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("a"), "it is there").unwrap();
    let mut sender = Sender::new(&QuotaTable::default(), scratch.path(), false);
    sender.files.policy.replace = false;
    sender.files.take_early(0, vec![7; 1000]);
    assert_eq!(lock(&sender.files.state).early.len(), 1);
    sender.list("a", EntryKind::File { size: 5000, sparse: false });
    sender.files.take_early(0, vec![7; 1000]);
    let state = lock(&sender.files.state);
    assert!(state.early.is_empty() && state.open.is_empty());
}
