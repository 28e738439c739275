//! The path that a capture shows, as a scenario.

use std::path::Path;

use sweetspot_diagnose::Flow;
use sweetspot_scenario::Scenario;

use super::input::Input;
use sweetspot_program::print::Shown;
use sweetspot_program::whole_file;

/// Writes the path of the first of `flows` that shows one, the largest first, to `out`.
pub fn write(capture: &Input, flows: &[Flow], out: &Path) -> Result<(), String> {
    let name = capture.title();
    let mut why = None;
    for flow in flows {
        let Some(path) = &flow.path else { continue };
        let title = format!("path from {} to {}", flow.source.ip(), flow.destination.ip());
        match path.scenario(&title) {
            Ok(text) => {
                Scenario::parse(&text).map_err(|error| format!("{name}: {error}"))?;
                whole_file::write(out, text.as_bytes()).map_err(|error| error.to_string())?;
                note!("wrote {}", out.shown());
                return Ok(());
            }
            Err(reason) => why = why.or(Some(format!("{reason}. {}", path.next_step))),
        }
    }
    let why = why.unwrap_or_else(|| "no flow in it carries data".to_owned());
    Err(format!("--scenario: {name} does not show all of a path: {why}"))
}
