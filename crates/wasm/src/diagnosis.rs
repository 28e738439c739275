//! Diagnoses a file passed in pieces, for a page in a browser: the first pass gives the verdicts, the second the graphs.

use serde::Serialize;
use sweetspot_diagnose::counted;
use sweetspot_diagnose::page::{Drawings, Parts};
use sweetspot_diagnose::recorded::{self, HEAD_BYTES};
use sweetspot_diagnose::report::{DiagnosisReport, PassFailure, Reading};
use sweetspot_trace::file::{CaptureError, Pieces, Record, ZSTD_MAGIC};
use sweetspot_trace::packet::Dissector;

use crate::zstd::Frames;
use crate::{DiagnosisError, simulated};

/// Maximum number of flows on a page: those with the most payload.
const MAX_FLOWS: usize = 20;
/// Maximum length of a text, which is kept as a whole beside the data parsed from it.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 20;

/// A page's content, passed to the page as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct DiagnosisPage {
    /// Title, sections and data of the graphs.
    #[serde(flatten)]
    pub parts: Parts,
    /// Remarks about the whole file, as text.
    pub remarks: Vec<String>,
}

/// A diagnosis in progress. Pass it a file with [`take`](Diagnosis::take), then call [`end`](Diagnosis::end).
///
/// ```
/// use sweetspot_wasm::Diagnosis;
///
/// let paste = "ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
///     \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:100001 busy:900ms rwnd_limited:880ms(97.8%)\n";
/// let mut diagnosis = Diagnosis::new("paste");
/// diagnosis.take(paste.as_bytes());
/// let page = diagnosis.end().unwrap().expect("a text needs no second pass");
/// assert_eq!(page.parts.title, "paste: 889 kbit/s while it was sending, 98 % of that time limited by the receiver's window");
/// ```
#[derive(Debug)]
pub struct Diagnosis {
    name: String,
    source: Source,
    pass: Pass,
}

/// How the file is compressed, as determined so far in this pass.
#[derive(Debug)]
enum Source {
    /// Too few bytes so far to tell.
    Unknown(Vec<u8>),
    Plain,
    Zstd(Box<Frames>),
    /// The reason why it cannot be decompressed.
    Broken(DiagnosisError),
}

#[derive(Debug)]
enum Pass {
    /// Too few bytes so far to tell its kind.
    Head(Vec<u8>),
    Text(Vec<u8>),
    Capture(Box<FirstPass>),
    /// The capture is passed a second time.
    Graphs(Box<SecondPass>),
    Ended,
}

#[derive(Debug)]
struct FirstPass {
    pieces: Pieces,
    reading: Reading,
    error: Option<CaptureError>,
}

#[derive(Debug)]
struct SecondPass {
    report: DiagnosisReport,
    pieces: Pieces,
    dissector: Dissector,
    drawings: Drawings,
}

impl Pass {
    /// Takes the next bytes of the decompressed content. False if the rest makes no difference.
    fn take(&mut self, piece: &[u8]) -> bool {
        match self {
            Pass::Head(head) => {
                head.extend_from_slice(piece);
                head.len() < HEAD_BYTES || self.recognise()
            }
            Pass::Text(text) => {
                text.extend_from_slice(piece);
                text.len() <= MAX_TEXT_BYTES
            }
            Pass::Capture(pass) => {
                let FirstPass { pieces, reading, error } = &mut **pass;
                *error = pieces.take(piece, &mut |record| reading.take(record)).err();
                error.is_none()
            }
            Pass::Graphs(pass) => {
                let SecondPass { pieces, dissector, drawings, .. } = &mut **pass;
                let mut draw = |record: &Record<'_>| {
                    if let Ok(segment) = dissector.dissect(record) {
                        drawings.take(&segment);
                    }
                };
                pieces.take(piece, &mut draw).is_ok()
            }
            Pass::Ended => false,
        }
    }

    /// Distinguishes a capture from a text; returns whether more bytes are useful.
    fn recognise(&mut self) -> bool {
        let Pass::Head(head) = self else { return true };
        let head = std::mem::take(head);
        *self = if recorded::is_text(&head) {
            Pass::Text(Vec::new())
        } else {
            let reading = Reading::new(MAX_FLOWS);
            Pass::Capture(Box::new(FirstPass { pieces: Pieces::default(), reading, error: None }))
        };
        self.take(&head)
    }
}

impl Diagnosis {
    /// A diagnosis of the file `name`.
    pub fn new(name: &str) -> Diagnosis {
        let source = Source::Unknown(Vec::new());
        Diagnosis { name: name.to_owned(), source, pass: Pass::Head(Vec::new()) }
    }

    /// Takes the next bytes of the file. False if the rest makes no difference; [`end`](Diagnosis::end) gives the reason.
    pub fn take(&mut self, piece: &[u8]) -> bool {
        self.decompress(piece, false)
    }

    /// Takes raw bytes of the file; `last` if they are its last.
    fn decompress(&mut self, piece: &[u8], last: bool) -> bool {
        match std::mem::replace(&mut self.source, Source::Plain) {
            Source::Unknown(mut head) => {
                head.extend_from_slice(piece);
                if head.len() < ZSTD_MAGIC.len() && !last {
                    self.source = Source::Unknown(head);
                    return true;
                }
                if head.starts_with(&ZSTD_MAGIC) {
                    self.source = Source::Zstd(Box::new(Frames::new()));
                }
                self.decompress(&head, last)
            }
            Source::Plain => self.pass.take(piece),
            Source::Zstd(mut frames) => {
                let frame = frames.take(piece, last, &mut |content| self.pass.take(content));
                let (source, continues) = match frame {
                    Ok(true) => (Source::Zstd(frames), true),
                    // The rest makes no difference.
                    Ok(false) => (Source::Plain, false),
                    Err(why) => (Source::Broken(why), false),
                };
                self.source = source;
                continues
            }
            Source::Broken(why) => {
                self.source = Source::Broken(why);
                false
            }
        }
    }

    /// Ends a pass. `None` if the whole file must be passed again, for the graphs.
    ///
    /// # Errors
    /// The reason why the file cannot be diagnosed.
    pub fn end(&mut self) -> Result<Option<DiagnosisPage>, DiagnosisError> {
        if matches!(self.source, Source::Unknown(_) | Source::Zstd(_)) {
            self.decompress(&[], true);
        }
        let source = std::mem::replace(&mut self.source, Source::Unknown(Vec::new()));
        if let Source::Broken(why) = source {
            self.pass = Pass::Ended;
            return Err(why);
        }
        if let Pass::Head(_) = self.pass {
            self.pass.recognise();
        }
        match std::mem::replace(&mut self.pass, Pass::Ended) {
            Pass::Text(text) if text.len() > MAX_TEXT_BYTES => Err(DiagnosisError::TooLong),
            Pass::Text(text) => {
                let report = recorded::report(&String::from_utf8_lossy(&text), MAX_FLOWS)?;
                let drawings = Drawings::new(&report.flows);
                Ok(Some(self.page(report, drawings)))
            }
            Pass::Capture(pass) => {
                let error = pass.error.or_else(|| pass.pieces.end().err());
                if let (Some(error), 0) = (&error, pass.reading.packets()) {
                    return Err(error.clone().into());
                }
                let mut report = pass.reading.report(error.map(PassFailure::Capture));
                simulated::simulate(&mut report.flows);
                let drawings = Drawings::new(&report.flows);
                let (pieces, dissector) = (Pieces::default(), Dissector::default());
                self.pass =
                    Pass::Graphs(Box::new(SecondPass { report, pieces, dissector, drawings }));
                Ok(None)
            }
            Pass::Graphs(pass) => Ok(Some(self.page(pass.report, pass.drawings))),
            Pass::Head(_) | Pass::Ended => Err(DiagnosisError::Ended),
        }
    }

    fn page(&self, report: DiagnosisReport, drawings: Drawings) -> DiagnosisPage {
        let DiagnosisReport { flows, flows_left_out, packets, tcp_segments, mut remarks } = report;
        if let (Some(packets), Some(segments)) = (packets, tcp_segments) {
            remarks.insert(0, format!("{packets} packets, {segments} of them TCP"));
        }
        if flows_left_out > 0 {
            let flows = counted(flows_left_out, "smaller flow is", "smaller flows are");
            remarks.push(format!("{flows} left out"));
        }
        let flows: Vec<_> = flows.into_iter().zip(drawings.end()).collect();
        DiagnosisPage { parts: Parts::new(&self.name, &flows), remarks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_a_run_is_recognised_as_such() {
        let scenario = "duration = \"1s\"\n[path]\nrate = \"1Mbit/s\"\nrtt = \"10ms\"\nbuffer = \"9pkt\"\n[[transfer]]";
        let question = serde_json::json!({ "ask": "run", "scenario": scenario });
        let mut diagnosis = Diagnosis::new("run.json");
        diagnosis.take(crate::answer(&question.to_string()).as_bytes());
        let error = diagnosis.end().map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "it is a result of sweetspot run; open it with sweetspot report");
    }
}
