//! Many connections at once under the programs.

mod cgroup;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use sweetspot_kernel::RecordKind;
use sweetspot_linux::clock;
use sweetspot_units::Duration;

use cgroup::{Inside, WATCH, programs};

/// Opens the given number of connections to itself, then prints a line. For each input line with a number of bytes, it
/// moves that many over each connection and prints another line.
const CROWD: &str = "\
import resource, socket, sys
count = int(sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * count + 100, most), most))
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(1)
pairs = []
for n in range(count):
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_IP, 24, 1)
    s.bind(('127.0.1.%d' % (1 + n % 64), 0))
    s.connect(listener.getsockname())
    pairs.append((s, listener.accept()[0]))
print('open', flush=True)
for line in sys.stdin:
    for receiver, sender in pairs:
        left = int(line)
        while left:
            piece = min(left, 20000)
            sender.sendall(bytes(piece))
            got = 0
            while got < piece: got += len(receiver.recv(20000))
            left -= piece
    print('moved', flush=True)";

/// Many connections of a process in a cgroup with attached programs.
struct Crowd {
    inside: Inside,
    commands: ChildStdin,
    output_lines: Receiver<String>,
}

impl Crowd {
    fn of(count: usize) -> Option<Crowd> {
        let on = programs()?;
        let mut command = Command::new("python3");
        command.args(["-c", CROWD, &count.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut inside = Inside::run(on, &mut command);
        let process = &mut inside.process;
        let (commands, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, output_lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        let mut crowd = Crowd { inside, commands, output_lines };
        crowd.wait_for("open");
        Some(crowd)
    }

    /// Waits for `word`, renewing the lease in the meantime.
    fn wait_for(&mut self, word: &str) {
        let patience = clock::now() + Duration::from_secs(120);
        loop {
            self.inside.connections.renew(clock::now()).unwrap();
            match self.output_lines.recv_timeout(std::time::Duration::from_millis(300)) {
                Ok(line) => return assert_eq!(line, word),
                Err(_) => assert!(clock::now() < patience, "no {word:?} came"),
            }
        }
    }

    /// Makes every connection receive `size` bytes.
    fn moves(&mut self, size: u64) {
        writeln!(self.commands, "{size}").unwrap();
        self.wait_for("moved");
    }

    /// The cookies of the transfers that were reported as bulk since the last call.
    fn bulk(&mut self) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        while let Some(record) = self.inside.connections.poll_record() {
            if record.kind == RecordKind::Bulk {
                found.insert(record.cookie);
            }
        }
        found
    }
}

#[test]
fn transfers_dropped_from_a_full_ring_are_reported_later() {
    // A ring of 1 MiB holds 3,640 records of 280 bytes with a header of 8.
    let count = 4_000;
    let Some(mut crowd) = Crowd::of(count) else { return };
    // No record is fetched in the meantime.
    crowd.moves(2 * WATCH.bulk.get());
    let first = crowd.bulk();
    assert!(!first.is_empty() && first.len() < count, "{}", first.len());
    // The next segments report the rest, as long as a transfer is bulk.
    crowd.moves(2 * WATCH.bulk.get());
    let rest = crowd.bulk();
    assert!(first.is_disjoint(&rest));
    assert_eq!(first.len() + rest.len(), count);
}
