use sweetspot_sizing::{
    Controller, Driver, Effect, InputSource, KernelView, PROBE_SIZE, ProbeAnswer, SenderReport,
    TrainPacket,
};
use sweetspot_units::{Bytes, Deadline, Duration, Time};

use crate::network::{AnswerHeader, TrainHeader};

/// The control loop at a simulated receiver. It feeds the simulation's packets to the same [`Driver`] to which a real
/// receiver feeds its socket and datagrams.
pub(crate) struct ControlLoop {
    driver: Driver,
    /// The kernel's own autotuning, which a controller's limit clamps.
    autotuning: Option<Autotuning>,
    kernel: KernelView,
    /// Segments that arrived ahead of a missing one in earlier transfers.
    out_of_order_before: u64,
}

/// TCP_WINDOW_CLAMP: the window is the smaller of the kernel's and the limit.
struct Autotuning {
    driver: Driver,
    window: Option<Bytes>,
    limit: Option<Bytes>,
}

impl Autotuning {
    fn window(&self) -> Option<Bytes> {
        match (self.window, self.limit) {
            (Some(window), Some(limit)) => Some(window.min(limit)),
            (window, limit) => window.or(limit),
        }
    }
}

/// Bytes of a probe on the wire.
pub(crate) const PROBE: u16 = PROBE_SIZE.get() as u16;

impl ControlLoop {
    /// A loop that begins at `start`. The controller's limits are clamps over `autotuning`, if any.
    pub(crate) fn new(
        controller: Box<dyn Controller + Send>,
        autotuning: Option<Box<dyn Controller + Send>>,
        start: Time,
    ) -> Self {
        let mut driver = Driver::new(controller, start, InputSource::OutOfBand);
        driver.handle_reachable(start);
        ControlLoop::driven_by(driver, autotuning, start)
    }

    /// A loop that begins at `start` with the saved parameters of `before`, which has ended.
    pub(crate) fn following(
        before: ControlLoop,
        autotuning: Option<Box<dyn Controller + Send>>,
        start: Time,
    ) -> Self {
        let ControlLoop { mut driver, kernel, .. } = before;
        driver.handle_end(start);
        // These effects belong to the previous transfer.
        while driver.poll_effect().is_some() {}
        let out_of_order_before = kernel.out_of_order;
        let kernel = KernelView { out_of_order: out_of_order_before, ..KernelView::default() };
        let control_loop = ControlLoop::driven_by(driver, autotuning, start);
        ControlLoop { kernel, out_of_order_before, ..control_loop }
    }

    fn driven_by(
        driver: Driver,
        autotuning: Option<Box<dyn Controller + Send>>,
        start: Time,
    ) -> Self {
        let autotuning = autotuning.map(|rule| Autotuning {
            driver: Driver::new(rule, start, InputSource::Kernel),
            window: None,
            limit: None,
        });
        ControlLoop { driver, autotuning, kernel: KernelView::default(), out_of_order_before: 0 }
    }

    /// Whether the controller needs arriving data.
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.driver.needs().data
    }

    /// The application read `bytes` of payload and left `unread`.
    #[inline]
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.driver.handle_data(now, bytes, unread);
        if let Some(autotuning) = &mut self.autotuning {
            autotuning.driver.handle_data(now, bytes, unread);
        }
    }

    #[inline]
    pub(crate) fn handle_round_trip(&mut self, rtt: Duration) {
        // This is the handshake's RTT: this end sends no other data.
        self.kernel.minimum_rtt.get_or_insert(rtt);
        self.kernel.rtt = Some(rtt);
    }

    /// Sets the number of segments that arrived ahead of a missing one since the connection began.
    #[inline]
    pub(crate) fn handle_out_of_order(&mut self, segments: u64) {
        self.kernel.out_of_order = self.out_of_order_before + segments;
    }

    pub(crate) fn handle_answer(&mut self, now: Time, header: &AnswerHeader, report: SenderReport) {
        let AnswerHeader { probe, sequence, .. } = *header;
        let answer = ProbeAnswer { probe, sequence, held: Duration::ZERO, report };
        self.driver.handle_answer(now, now, &answer);
    }

    pub(crate) fn handle_train_packet(&mut self, now: Time, header: &TrainHeader, size: Bytes) {
        let part = TrainPacket { train: header.train, index: header.index };
        self.driver.handle_train_packet(now, now, size, part);
    }

    /// Time at which [`ControlLoop::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Deadline {
        let autotuning = self.autotuning.as_ref().map(|rule| rule.driver.poll_timeout());
        Deadline::at(self.driver.poll_timeout()).min(autotuning.into())
    }

    /// The time of [`ControlLoop::poll_timeout`] has come. The receiver advertises a window of `advertised` bytes.
    pub(crate) fn handle_timeout(&mut self, now: Time, advertised: Bytes) {
        self.kernel.window = Some(advertised);
        if self.driver.poll_timeout() <= now {
            self.driver.handle_timeout(now, &self.kernel);
        }
        if let Some(autotuning) = &mut self.autotuning
            && autotuning.driver.poll_timeout() <= now
        {
            autotuning.driver.handle_timeout(now, &self.kernel);
        }
    }

    /// The next effect to perform, until `None`.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        match self.driver.poll_effect() {
            Some(Effect::Window(limit)) => {
                return Some(Effect::Window(match &mut self.autotuning {
                    None => limit,
                    Some(autotuning) => {
                        autotuning.limit = limit;
                        autotuning.window()
                    }
                }));
            }
            Some(effect) => return Some(effect),
            None => {}
        }
        let autotuning = self.autotuning.as_mut()?;
        while let Some(effect) = autotuning.driver.poll_effect() {
            if let Effect::Window(window) = effect {
                autotuning.window = window;
                return Some(Effect::Window(autotuning.window()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sweetspot_sizing::{ControllerConfig, LinuxRule, Sizing};

    use super::*;

    const SETTING: ControllerConfig = ControllerConfig {
        mss: Bytes::new(1448),
        packet: Bytes::new(1500),
        max_window: Bytes::new(6_000_000),
        size: None,
        path: None,
    };

    /// A loop, and the window that it requested last.
    struct Receiver {
        control_loop: ControlLoop,
        window: Option<Bytes>,
    }

    impl Receiver {
        fn new(sizing: Sizing, autotuning: Option<Sizing>) -> Receiver {
            let controller = |sizing: Sizing| sizing.controller(&SETTING).unwrap();
            let control_loop =
                ControlLoop::new(controller(sizing), autotuning.map(controller), Time::ZERO);
            Receiver { control_loop, window: None }
        }

        /// Time passes, the receiver times a round trip, and segments arrive.
        fn receive(&mut self, now: Time, rtt: Duration, bytes: Bytes) {
            self.control_loop.handle_timeout(now, SETTING.max_window);
            self.control_loop.handle_round_trip(rtt);
            self.control_loop.handle_data(now, bytes, Bytes::ZERO);
            while let Some(effect) = self.control_loop.poll_effect() {
                if let Effect::Window(window) = effect {
                    self.window = window;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_limit_clamps_the_kernels_autotuned_window(
            arrivals in prop::collection::vec((1u64..40, 1u64..30, 5u64..60), 1..300),
            limit in prop::sample::select(vec!["sobas", "sobas:live", "rledbat", "fixed:200kB"]),
        ) {
            let kernel = Sizing::Linux(LinuxRule::NEWEST);
            let limit: Sizing = limit.parse().unwrap();
            let mut alone = [Receiver::new(kernel, None), Receiver::new(limit, None)];
            let mut clamped = Receiver::new(limit, Some(kernel));
            let mut now = Time::ZERO;
            for (segments, pause, rtt) in arrivals {
                now += Duration::from_millis(pause);
                let (rtt, bytes) = (Duration::from_millis(rtt), SETTING.mss * segments);
                for receiver in alone.iter_mut().chain([&mut clamped]) {
                    receiver.receive(now, rtt, bytes);
                }
                // `None` means no limit.
                let min = alone.iter().filter_map(|receiver| receiver.window).min();
                prop_assert_eq!(clamped.window, min);
            }
        }
    }
}
