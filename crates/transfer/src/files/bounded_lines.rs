use crate::limits::MAX_WOULD_MOVE_BYTES;

/// Names for the user, up to a limit, and the number beyond it: those that a dry run would move, or that were deleted.
#[derive(Debug, Default)]
pub(crate) struct BoundedLines {
    lines: Vec<String>,
    bytes: usize,
    left_out: u64,
}

impl BoundedLines {
    pub fn add(&mut self, line: String) {
        self.bytes += line.len() + size_of::<String>();
        if self.bytes <= MAX_WOULD_MOVE_BYTES {
            self.lines.push(line);
        } else {
            self.left_out += 1;
        }
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
    fn a_dry_run_counts_what_it_does_not_list() {
        let mut would_move = BoundedLines::default();
        // Two lines fit, a third does not.
        (0..3).for_each(|_| would_move.add("x".repeat(MAX_WOULD_MOVE_BYTES * 2 / 5)));
        let lines = would_move.into_lines();
        assert_eq!((lines.len(), lines[2].as_str()), (3, "and 1 more"));
    }
}
