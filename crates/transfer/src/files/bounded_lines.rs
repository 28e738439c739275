use crate::limits::MAX_WOULD_MOVE_BYTES;

/// Names for the user up to a limit, and the number of further names. Holds the names that a dry run would transfer,
/// or that were deleted.
#[derive(Debug, Default)]
pub(crate) struct BoundedLines {
    lines: Vec<String>,
    bytes: usize,
    left_out: u64,
}

impl BoundedLines {
    /// Adds a line if it fits; otherwise only counts it. Returns whether it fits.
    pub fn add(&mut self, line: String) -> bool {
        self.bytes += line.len() + size_of::<String>();
        let fits = self.bytes <= MAX_WOULD_MOVE_BYTES;
        if fits {
            self.lines.push(line);
        } else {
            self.left_out += 1;
        }
        fits
    }

    pub fn into_lines(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.lines.push(format!("and {} more", self.left_out));
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_counts_the_lines_it_omits() {
        let mut would_move = BoundedLines::default();
        // Two lines fit, a third does not.
        let fit = (0..3).map(|_| would_move.add("x".repeat(MAX_WOULD_MOVE_BYTES * 2 / 5)));
        assert_eq!(fit.collect::<Vec<_>>(), [true, true, false]);
        let lines = would_move.into_lines();
        assert_eq!((lines.len(), lines[2].as_str()), (3, "and 1 more"));
    }
}
