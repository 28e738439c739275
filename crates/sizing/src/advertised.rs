use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, SizingEvent, SizingPhase,
};

/// A receiver that sizes its window from its own kernel's measurements.
pub(crate) trait RightSizer {
    /// The application read `bytes`, and `unread` bytes are still in the receive buffer.
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes);

    /// Takes the kernel's estimate of the RTT.
    fn handle_rtt(&mut self, now: Time, rtt: Duration);

    /// Starts the connection and sets the first window, before the first byte.
    fn begin(&mut self, now: Time);

    fn advertised(&self) -> &Advertised;

    /// The window to advertise, mutable.
    fn advertised_mut(&mut self) -> &mut Advertised;

    /// Whether the window still grows.
    fn is_growing(&self) -> bool;
}

impl<R: RightSizer> Controller for R {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Data { bytes, unread } => self.handle_data(now, bytes, unread),
            Input::KernelRtt(rtt) => self.handle_rtt(now, rtt),
            Input::Timeout => self.begin(now),
            Input::Probe(_)
            | Input::Sender(_)
            | Input::MinimumRtt(_)
            | Input::OutOfOrder { .. }
            | Input::Train(_)
            | Input::Window { .. } => {}
            Input::End => self.advertised_mut().lift(),
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        (!self.advertised().is_set()).then_some(Time::ZERO)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.advertised_mut().poll_output()
    }
    fn needs(&self) -> Needs {
        Needs::KERNEL
    }
    fn phase(&self) -> SizingPhase {
        if self.is_growing() { SizingPhase::Ramping } else { SizingPhase::Holding }
    }
}

/// The window that a right-sizing controller advertises, and the outputs that set it.
#[derive(Debug)]
pub(crate) struct Advertised {
    min: Bytes,
    max: Bytes,
    window: Option<Bytes>,
    outputs: VecDeque<Output>,
}

impl Advertised {
    pub(crate) fn new(config: &ControllerConfig) -> Advertised {
        Advertised {
            // A window below one segment would stop the sender.
            min: config.mss.min(config.max_window),
            max: config.max_window,
            window: None,
            outputs: VecDeque::new(),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.window.is_some()
    }

    /// The largest window that the host allows.
    pub(crate) fn max(&self) -> Bytes {
        self.max
    }

    pub(crate) fn set(&mut self, now: Time, window: Bytes) {
        let window = window.clamp(self.min, self.max);
        if self.window != Some(window) {
            self.window = Some(window);
            self.outputs.push_back(Output::Window(Some(window)));
            let kind = EventKind::Limited { window };
            self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
        }
    }

    pub(crate) fn lift(&mut self) {
        self.window = None;
        self.outputs.push_back(Output::Window(None));
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}
