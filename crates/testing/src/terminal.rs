//! A terminal of a chosen width, for progress bars.

use std::io;
use std::sync::{Arc, Mutex};

/// Keeps the line that was drawn last. Clones share it.
#[derive(Debug, Clone)]
pub struct LineTerminal {
    width: u16,
    line: Arc<Mutex<String>>,
}

impl LineTerminal {
    /// An empty terminal of that many columns.
    pub fn new(width: u16) -> LineTerminal {
        LineTerminal { width, line: Arc::default() }
    }

    /// The newest line, without spaces at its end.
    pub fn line(&self) -> String {
        self.line.lock().map(|line| line.trim_end().to_owned()).unwrap_or_default()
    }

    /// The columns of that line, spaces at its end included.
    pub fn columns(&self) -> usize {
        self.line.lock().map_or(0, |line| line.chars().count())
    }

    /// Where a bar is to draw.
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
