use std::fs::File;
use std::io::{self, Seek, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sweetspot_linux::isolation::isolate_one;

use crate::LabError;
use crate::error::Doing;

/// Exit code of the isolated process once it has written its result.
const ANSWERED: u8 = 0;

/// The error message of failed isolated work.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Failure(String);

/// Runs `work` in its own process tree and namespaces and returns its result. The caller must be
/// single-threaded; it stays in its own namespaces.
pub fn isolated<T: Serialize + DeserializeOwned>(
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<T, LabError> {
    // An unnamed file shared by both processes, so nothing is left behind.
    let mut answer = tempfile::tempfile().doing("make a temporary file")?;
    let mut inside = answer.try_clone().doing("duplicate a file")?;
    let code = isolate_one(|| {
        let result = work().map_err(|error| Failure(error.to_string()));
        match write(&mut inside, &result) {
            Ok(()) => ANSWERED,
            Err(_) => 1,
        }
    })?;
    if code != ANSWERED {
        return Err(LabError::Inside(format!("lab: the experiment ended with code {code}")));
    }
    answer.rewind().doing("read the experiment's answer")?;
    let result: Result<T, Failure> = serde_json::from_reader(io::BufReader::new(answer))
        .map_err(io::Error::other)
        .doing("read the experiment's answer")?;
    result.map_err(|Failure(message)| LabError::Inside(message))
}

fn write<T: Serialize>(file: &mut File, result: &Result<T, Failure>) -> io::Result<()> {
    let text = serde_json::to_vec(result).map_err(io::Error::other)?;
    file.write_all(&text)
}
