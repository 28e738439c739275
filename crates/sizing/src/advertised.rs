use std::collections::VecDeque;

use sweetspot_units::{Bytes, Time};

use crate::{Event, EventKind, Output, Setting};

/// The window that a right-sizing controller wants advertised, and the outputs that say so.
#[derive(Debug)]
pub(crate) struct Advertised {
    least: Bytes,
    most: Bytes,
    window: Option<Bytes>,
    outputs: VecDeque<Output>,
}

impl Advertised {
    pub(crate) fn new(setting: &Setting) -> Advertised {
        Advertised {
            // Below one segment nothing would move.
            least: setting.mss.min(setting.max_window),
            most: setting.max_window,
            window: None,
            outputs: VecDeque::new(),
        }
    }

    /// Whether a window was set at all.
    pub(crate) fn is_set(&self) -> bool {
        self.window.is_some()
    }

    /// The most that the host allows.
    pub(crate) fn most(&self) -> Bytes {
        self.most
    }

    pub(crate) fn set(&mut self, now: Time, window: Bytes) {
        let window = window.clamp(self.least, self.most);
        if self.window != Some(window) {
            self.window = Some(window);
            self.outputs.push_back(Output::Window(Some(window)));
            let kind = EventKind::Limited { window };
            self.outputs.push_back(Output::Event(Event { at: now, kind }));
        }
    }

    /// No limit any more.
    pub(crate) fn lift(&mut self) {
        self.window = None;
        self.outputs.push_back(Output::Window(None));
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}
