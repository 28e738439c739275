use crate::limits::MAX_FAILURE_LINES;

/// Entries that were not transferred: their number, and messages for the first ones.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub count: u64,
    pub lines: Vec<String>,
}

impl Failures {
    pub fn add(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < MAX_FAILURE_LINES {
            self.lines.push(line);
        }
    }
}
