//! A terminal of a chosen width, for progress bars.

use std::io;
use std::sync::{Arc, Mutex};

/// Keeps the last line drawn. Clones share it.
#[derive(Debug, Clone)]
pub struct LineTerminal {
    width: u16,
    line: Arc<Mutex<String>>,
}

impl LineTerminal {
    /// An empty terminal with `width` columns.
    pub fn new(width: u16) -> LineTerminal {
        LineTerminal { width, line: Arc::default() }
    }

    /// The newest line, without trailing spaces.
    pub fn line(&self) -> String {
        self.line.lock().map(|line| line.trim_end().to_owned()).unwrap_or_default()
    }

    /// The number of columns of that line, trailing spaces included.
    pub fn columns(&self) -> usize {
        self.line.lock().map_or(0, |line| line.chars().count())
    }

    /// The draw target for a progress bar.
    pub fn target(&self) -> indicatif::ProgressDrawTarget {
        indicatif::ProgressDrawTarget::term_like(Box::new(self.clone()))
    }
}

impl indicatif::TermLike for LineTerminal {
    fn width(&self) -> u16 {
        self.width
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut line = self.line.lock().map_err(|_| io::ErrorKind::Other)?;
        line.push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.line.lock().map_err(|_| io::ErrorKind::Other)?.clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
