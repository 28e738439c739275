//! The controller's seat on a live socket: what the steering wants is done here, and what the
//! kernel did is read back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_linux::clock;
use sweetspot_linux::tcp::{Info, Recipe, WindowActuator};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, lock};
use crate::TransferError;
use crate::observer::Observer;
use crate::protocol::Message;
use crate::series::Line;
use crate::steering::{Effect, KernelView, Steering};

/// While the disk catches up after the last byte, the sender hears this often that we live.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);

/// Shared by the thread that reads content and the one that keeps time.
pub(crate) struct Helm<'a> {
    channel: &'a Channel,
    hands: Mutex<Hands>,
    observer: Mutex<&'a mut dyn Observer>,
    /// All content came; the disk is catching up.
    finishing: AtomicBool,
    done: AtomicBool,
}

/// What only one thread may hold at a time.
struct Hands {
    steering: Steering,
    actuator: WindowActuator,
    records: Vec<Line>,
}

impl<'a> Helm<'a> {
    pub fn new(
        channel: &'a Channel,
        steering: Steering,
        recipe: Recipe,
        observer: &'a mut dyn Observer,
    ) -> Helm<'a> {
        let actuator = WindowActuator::new(recipe);
        Helm {
            channel,
            hands: Mutex::new(Hands { steering, actuator, records: Vec::new() }),
            observer: Mutex::new(observer),
            finishing: AtomicBool::new(false),
            done: AtomicBool::new(false),
        }
    }

    /// Data was read from the socket; called after every read.
    pub fn handle_data(
        &self,
        bytes: Bytes,
        content: Bytes,
        unread: Bytes,
    ) -> Result<(), TransferError> {
        let mut hands = lock(&self.hands);
        hands.steering.handle_data(clock::now(), bytes, content, unread);
        self.perform(&mut hands)?;
        // Reading is when the kernel's autotuning grows the buffer and overwrites the limit.
        hands
            .actuator
            .hold(self.channel.socket())
            .map_err(TransferError::system("TCP_WINDOW_CLAMP"))
    }

    /// All content came.
    pub fn finishing(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    /// The transfer is over, whichever way: [`Helm::keep_time`] returns.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Asks the steering something.
    pub fn ask<T>(&self, question: impl FnOnce(&Steering) -> T) -> T {
        question(&lock(&self.hands).steering)
    }

    /// Runs the controller's timers until [`Helm::done`].
    pub fn keep_time(&self) -> Result<(), TransferError> {
        let mut busy_at = Time::MAX;
        while !self.done.load(Ordering::Acquire) {
            let now = clock::now();
            let due = if self.finishing.load(Ordering::Acquire) {
                busy_at = busy_at.min(now + BUSY_INTERVAL);
                if now >= busy_at {
                    self.channel.say(&Message::Busy)?;
                    busy_at = now + BUSY_INTERVAL;
                }
                now + crate::steering::CONTROL_INTERVAL
            } else {
                self.tick()?
            };
            clock::sleep_until(due);
        }
        Ok(())
    }

    fn tick(&self) -> Result<Time, TransferError> {
        let failed = TransferError::system("TCP_INFO");
        let info = Info::read(self.channel.socket()).map_err(failed)?;
        let view = KernelView { window: info.rcv_wnd, rtt: info.rcv_rtt };
        let (records, due) = {
            let mut hands = lock(&self.hands);
            hands.steering.handle_timeout(clock::now(), &view);
            self.perform(&mut hands)?;
            (std::mem::take(&mut hands.records), hands.steering.poll_timeout())
        };
        let mut observer = lock(&self.observer);
        for line in &records {
            observer.line(line);
        }
        Ok(due)
    }

    fn perform(&self, hands: &mut Hands) -> Result<(), TransferError> {
        while let Some(effect) = hands.steering.poll_effect() {
            match effect {
                Effect::Limit(limit) => hands.actuator.set(limit),
                Effect::Tell(message) => self.channel.say(&message)?,
                Effect::Record(line) => hands.records.push(line),
            }
        }
        Ok(())
    }
}
