//! `diagnose` of a live connection on other systems than Linux.

use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_units::Duration;

use super::target::LiveTarget;
use crate::verbs::elsewhere::needs_linux;

pub fn watch(
    target: &LiveTarget,
    _: Option<&str>,
    _: Duration,
    _: usize,
) -> Result<(DiagnosisReport, Option<u8>), String> {
    Err(needs_linux(&format!("diagnose {target}")))
}
