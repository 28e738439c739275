use ruzstd::decoding::errors::FrameDecoderError;
use sweetspot_diagnose::recorded::RecordingError;
use sweetspot_scenario::{EngineError, ScenarioError};
use sweetspot_trace::file::{CaptureError, large_zstd_window};
use sweetspot_units::Duration;
use thiserror::Error;

use crate::diagnosis::MAX_TEXT_BYTES;
use crate::series::MAX_SAMPLES;

/// Why a question cannot be answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The question is not valid JSON.
    #[error("the question is not valid JSON: {0}")]
    Question(#[source] serde_json::Error),
    /// The text is not a scenario.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// The scenario has no transfer to draw a curve of.
    #[error("the scenario has no [[transfer]] whose window could be varied")]
    NoTransfer,
    /// More samples than a page can draw.
    #[error("an interval of {0} gives more than {MAX_SAMPLES} samples; choose a longer one")]
    TooManySamples(Duration),
    /// The engine cannot run the scenario.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// The transfer of a capture did not end within this simulated time.
    #[error("the path is not known well enough: simulated, it took longer than {0}")]
    TooSlow(Duration),
    /// The answer cannot be written as JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Why a file cannot be diagnosed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiagnosisError {
    /// A zstd frame needs a window of this many bytes, which is too large.
    #[error("{}", large_zstd_window(*.0))]
    LargeWindow(u64),
    /// The last zstd frame is truncated or damaged.
    #[error("its last zstd frame is cut off or damaged")]
    CutOff,
    /// Another zstd frame is damaged.
    #[error("its zstd frame is damaged: {0}")]
    Frame(#[source] FrameDecoderError),
    /// The text is too long.
    #[error("it has more than {} MiB of text; give a part of it", MAX_TEXT_BYTES >> 20)]
    TooLong,
    /// The text contains no recordings.
    #[error("{0}")]
    Recording(#[from] RecordingError),
    /// The capture cannot be read.
    #[error("{0}")]
    Capture(#[from] CaptureError),
    /// The diagnosis has already ended.
    #[error("the diagnosis has already ended")]
    Ended,
}
