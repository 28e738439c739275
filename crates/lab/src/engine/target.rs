//! One measured transfer, run by the code of `sweetspot serve` and `sweetspot send`.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_control::TransferSummary;
use sweetspot_control::series::{SeriesEvent, SeriesRecord, SeriesRow};
use sweetspot_emulator::Side;
use sweetspot_linux::clock;
use sweetspot_sizing::KnownPath;
use sweetspot_transfer::{
    AdmittedTransfer, ApplicationPace, EndsAfter, Purpose, ReceiveOptions, SendOptions,
    ServeOptions, Server, ServerObserver, Sources, Target, TransferError, TransferObserver, send,
};
use sweetspot_units::{Bytes, Duration, Time};

use super::application::{Paced, Reader, Writer};
use crate::error::Doing;
use crate::plan::TargetPlan;
use crate::{LabError, scratch};

/// Time after the end during which paced applications keep their pace: goodput is interpolated between the rows
/// around the end.
const LINGER: Duration = Duration::from_secs(2);
/// Lifetime of a ticket: longer than any run.
const TICKET_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// A transfer with a listening receiver.
pub(super) struct MeasuredTransfer<'a> {
    plan: &'a TargetPlan,
    known: KnownPath,
    server: Server,
    file: PathBuf,
    events: Events,
    reader: Option<Arc<Paced<Reader>>>,
    writer: Option<Arc<Paced<Writer>>>,
}

#[derive(Debug, Default)]
pub(super) struct TransferTrace {
    /// When its sender started connecting, since the start of the run.
    pub began: Duration,
    /// The sender's rows; their times count from `began`.
    pub rows: Vec<SeriesRow>,
    /// The controller's events; their times count from the receiver's accept.
    pub events: Vec<SeriesEvent>,
    /// When all of its content had been delivered, if it was.
    pub ended: Option<Duration>,
}

/// Events recorded by the receiver's observer.
type Events = Arc<Mutex<Vec<SeriesEvent>>>;

impl<'a> MeasuredTransfer<'a> {
    /// Creates the sparse file of zeros to send, and starts the receiver listening on `far`.
    pub fn prepare(
        plan: &'a TargetPlan,
        number: usize,
        known: KnownPath,
        far: &Side,
        scratch: &Path,
    ) -> Result<MeasuredTransfer<'a>, LabError> {
        let file = scratch.join(format!("content-{number}"));
        let made = File::create_new(&file).and_then(|f| f.set_len(plan.size.get().max(1)));
        made.doing("make a file to send")?;
        let directory = scratch::inbox(scratch, number).doing("make a directory to receive in")?;
        let reader = Paced::new(&plan.reader, plan.portion, plan.seed);
        let writer = Paced::new(&plan.writer, plan.portion, plan.seed);
        let receive = ReceiveOptions {
            reader: reader.clone().map(|reader| reader as Arc<dyn ApplicationPace>),
            sizing: Some(plan.sizing),
            path: Some(known),
            // An experiment has exactly the connections in its scenario.
            streams: Some(1),
            retry_for: Duration::ZERO,
            ..ReceiveOptions::at(Target::Into(directory))
        };
        let options = ServeOptions {
            listen: (far.host_pair(plan.host_pair), 0).into(),
            ends: EndsAfter::First,
            lifetime: TICKET_LIFETIME,
            ..ServeOptions::new(Purpose::Receive(receive))
        };
        let server = far.run(|| Server::bind(options)).doing("enter a namespace")??;
        let events = Events::default();
        Ok(MeasuredTransfer { plan, known, server, file, events, reader, writer })
    }

    /// Receives until [`MeasuredTransfer::stop`] or the end of the transfer.
    pub fn receive(&self, far: &Side) -> Result<(), LabError> {
        far.enter().doing("enter a namespace")?;
        // The sender's outcome is used, and it also reports errors.
        let _ = self.server.run(&EventRecorder(self.events.clone()));
        Ok(())
    }

    /// Sends from the transfer's start on, relative to `zero`; the run ends at `end`.
    pub fn send(&self, near: &Side, zero: Time, end: Time) -> Result<TransferTrace, LabError> {
        near.enter().doing("enter a namespace")?;
        clock::sleep_until((zero + self.plan.start).min(end));
        let began = clock::now();
        self.reader.iter().for_each(|reader| reader.begin(began, end + LINGER));
        self.writer.iter().for_each(|writer| writer.begin(began, end + LINGER));
        let mut trace = TransferTrace { began: began.since(zero), ..TransferTrace::default() };
        if began < end {
            let paths = vec![self.file.clone()];
            let options = SendOptions {
                // The file is one large hole, which is sent as content.
                sources: Sources { paths, dense: true, ..Sources::default() },
                sizing: Some(self.plan.sizing),
                congestion: Some(self.plan.congestion.to_owned()),
                may_switch: self.plan.may_switch,
                path: Some(self.known),
                send_buffer: self.plan.send_buffer,
                writer: self.writer.clone().map(|writer| writer as Arc<dyn ApplicationPace>),
                retry_for: Duration::ZERO,
                ..SendOptions::default()
            };
            let mut rows = RowRecorder(Vec::new());
            let sent = send(&self.server.ticket().clone().into(), &options, &mut rows);
            trace.rows = rows.0;
            match sent {
                Ok(_) => trace.ended = Some(clock::now().since(zero)),
                // The run has ended, and the receiver with it.
                Err(_) if clock::now() >= end => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        trace.events = std::mem::take(&mut events);
        Ok(trace)
    }

    /// Ends the transfer.
    pub fn stop(&self, far: &Side) {
        // The server wakes itself with a connection, which must come from its own side.
        let _ = far.run(|| self.server.stop());
    }

    /// The size of its content, if finite.
    pub fn size(&self) -> Option<Bytes> {
        self.plan.ends.then_some(self.plan.size)
    }
}

struct RowRecorder(Vec<SeriesRow>);

impl TransferObserver for RowRecorder {
    fn line(&mut self, line: &SeriesRecord) {
        if let SeriesRecord::Row(row) = line {
            self.0.push(row.clone());
        }
    }
}

struct EventRecorder(Events);

impl TransferObserver for EventRecorder {
    fn line(&mut self, line: &SeriesRecord) {
        if let SeriesRecord::Event(mark) = line {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(mark.clone());
        }
    }
}

impl ServerObserver for EventRecorder {
    fn admitted(&self, _transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
        Box::new(EventRecorder(self.0.clone()))
    }
    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}
    fn rejected(&self, _peer: SocketAddr, _client: Option<&str>, _error: &TransferError) {}
}

impl From<TransferError> for LabError {
    fn from(error: TransferError) -> LabError {
        LabError::System {
            what: "move the target's file",
            source: io::Error::other(error.to_string()),
        }
    }
}
