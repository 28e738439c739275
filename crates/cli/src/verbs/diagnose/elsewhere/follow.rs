//! `diagnose --follow` on other systems than Linux.

use std::path::Path;

use super::DiagnoseArguments;
use crate::verbs::Ending;
use crate::verbs::elsewhere::needs_linux;

pub fn run(_: &Path, _: &DiagnoseArguments) -> Ending {
    Err(needs_linux("diagnose --follow").into())
}
