//! `diagnose --follow` on other systems than Linux.

use std::path::Path;

use super::Arguments;
use crate::verbs::Ending;
use crate::verbs::elsewhere::needs_linux;

pub fn run(_: &Path, _: &Arguments) -> Ending {
    Err(needs_linux("diagnose --follow").into())
}
