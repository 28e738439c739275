use std::io::{self, Write};

use sweetspot_linux::guardian::{self, GuardianPipe};
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::signals::Supervisor;

use crate::lease::{AppliedLimit, lift_all};
use crate::leftovers::Record;

/// The limits to be lifted at the end. The guardian process learns of each limit before it is set, so that it is lifted even
/// after `kill -9`. The same lines go into a record, for the last guardian and for the next tuner.
///
/// This holds no duplicate of a socket: that would keep a connection alive after its program closed it.
#[derive(Debug)]
pub struct Leases {
    guardian_pipe: GuardianPipe,
    record: Record,
}

impl Leases {
    /// Reports to the guardian the limit that is about to be set. The error means that the guardian is gone.
    pub fn take(
        &mut self,
        socket: &LiveSocket,
        started: u64,
        applied: AppliedLimit,
    ) -> io::Result<()> {
        let (pid, inode, cookie) = (socket.process().pid(), socket.inode(), socket.cookie());
        // A single write: if this process is killed, the guardian reads the whole line or nothing.
        let line = format!("+ {} {pid} {started} {inode} {cookie}\n", applied.word());
        self.record.take(cookie, &line);
        self.guardian_pipe.write_all(line.as_bytes())
    }

    /// Tells the guardian that there is nothing left to undo on this connection.
    pub fn release(&mut self, cookie: u64) -> io::Result<()> {
        let line = format!("- {cookie}\n");
        let written = self.guardian_pipe.write_all(line.as_bytes());
        self.record.release(cookie, &line);
        written
    }

    /// Whether the guardian is gone: then nobody would lift a limit if this process were killed.
    pub fn are_unguarded(&self) -> bool {
        self.guardian_pipe.is_cut()
    }
}

/// Runs `work` in a child process under a guardian, which undoes what the child leaves behind. Both call `undo` at the end,
/// because either may be killed. If both are killed, a last guardian does the same. Returns the child's exit code.
pub fn guarded(
    work: impl FnOnce(Leases, Supervisor) -> u8,
    undo: impl Fn() + Sync,
) -> io::Result<u8> {
    let (record, undo) = (Record::create()?, &undo);
    let (mut of_guardian, of_last) = (record.try_clone()?, record.try_clone()?);
    let work = |guardian_pipe, supervisor| {
        let code = work(Leases { guardian_pipe, record }, supervisor);
        undo();
        code
    };
    let guard = move |reader| {
        lift_all(reader);
        undo();
        // Nothing is left for the last guardian.
        of_guardian.remove();
    };
    let last = move || {
        of_last.lift();
        undo();
    };
    guardian::with_guardian(work, guard, last)
}
