//! Runs long work with a progress display and handling of signals.

use std::io::{self, IsTerminal};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use crate::print::is_quiet;
use indicatif::{ProgressBar, ProgressStyle};
use sweetspot_scenario::{Engine, EngineResult, Recorder, Scenario};
use sweetspot_system::{Interruption, clock};
use sweetspot_units::{Duration, Time};

/// An engine that counts the runs it has finished.
pub struct CountingEngine<'a> {
    engine: &'a (dyn Engine + Sync),
    done: AtomicUsize,
}

impl<'a> CountingEngine<'a> {
    /// Counts the runs that `engine` finishes from now on.
    pub fn new(engine: &'a (dyn Engine + Sync)) -> CountingEngine<'a> {
        CountingEngine { engine, done: AtomicUsize::new(0) }
    }

    /// Number of finished runs.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

impl Engine for CountingEngine<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        let outcome = self.engine.run(scenario, recorder);
        self.done.fetch_add(1, Ordering::Relaxed);
        outcome
    }
}

/// An engine that announces the number of finished runs after each run. It needs no additional thread.
pub struct AnnouncingEngine<'a> {
    counting: CountingEngine<'a>,
    total: usize,
}

impl<'a> AnnouncingEngine<'a> {
    /// Announces the `total` runs of `engine`.
    pub fn new(engine: &'a (dyn Engine + Sync), total: usize) -> AnnouncingEngine<'a> {
        AnnouncingEngine { counting: CountingEngine::new(engine), total }
    }
}

impl Engine for AnnouncingEngine<'_> {
    fn name(&self) -> &'static str {
        self.counting.name()
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        let outcome = self.counting.run(scenario, recorder)?;
        note!("{}/{} runs", self.counting.done(), self.total);
        Ok(outcome)
    }
}

/// Interval between updates of the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between plain lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Work that is done within this time shows no spinner.
const SHORT: Duration = Duration::from_secs(1);
/// Interval between lines about work that takes many minutes.
const WORD_INTERVAL: Duration = Duration::from_secs(30);

/// Runs `work` on its own thread and shows how much of `total` is `done`. On a signal it calls `interrupted` and ends the program
/// with the shell's exit code, 128 + the signal's number.
pub fn run_with_progress<T: Send>(
    work: impl FnOnce() -> T + Send,
    done: impl Fn() -> usize,
    total: usize,
    interrupted: impl FnOnce(),
) -> T {
    with_display(ProgressDisplay::new(total, "runs"), work, done, interrupted)
}

fn with_display<T: Send>(
    mut progress: ProgressDisplay,
    work: impl FnOnce() -> T + Send,
    done: impl Fn() -> usize,
    interrupted: impl FnOnce(),
) -> T {
    supervise(
        work,
        |step| match step {
            Message::Poll => progress.show(done()),
            Message::End => progress.clear(),
        },
        interrupted,
    )
}

/// Runs `work` and prints a `line` from time to time; signals are handled as in [`run_with_progress`].
pub fn run_with_status_lines<T: Send>(
    work: impl FnOnce() -> T + Send,
    line: impl Fn() -> String,
    interrupted: impl FnOnce(),
) -> T {
    let mut next = clock::now() + WORD_INTERVAL;
    let watch = |step| {
        if matches!(step, Message::Poll) && clock::now() >= next {
            next = clock::now() + WORD_INTERVAL;
            note!("{}", line());
        }
    };
    supervise(work, watch, interrupted)
}

/// Runs `work` of unknown length and shows what it is `doing` and for how long: continuously on a terminal after the first second,
/// otherwise in a line from time to time. Signals are handled as in [`run_with_progress`].
pub fn run_with_timer<T: Send>(
    work: impl FnOnce() -> T + Send,
    doing: impl Fn() -> String,
    interrupted: impl FnOnce(),
) -> T {
    let began = clock::now();
    let spinner = match io::stderr().is_terminal() && !is_quiet() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    };
    let mut next = began + LINE_INTERVAL;
    let watch = |step| {
        let now = clock::now();
        let words = || format!("{}, {:.0} s elapsed", doing(), now.since(began).as_secs_f64());
        match step {
            Message::End => spinner.finish_and_clear(),
            Message::Poll if spinner.is_hidden() && now >= next => {
                next = now + LINE_INTERVAL;
                note!("{}", words());
            }
            Message::Poll if now.since(began) >= SHORT => {
                spinner.set_message(words());
                spinner.tick();
            }
            Message::Poll => {}
        }
    };
    supervise(work, watch, interrupted)
}

/// Runs `work` that shows its own progress; signals are handled as in [`run_with_progress`].
pub fn until_interrupted<T: Send>(
    work: impl FnOnce() -> T + Send,
    interrupted: impl FnOnce(),
) -> T {
    supervise(work, |_| {}, interrupted)
}

/// Runs `work`, which ends early when its argument becomes true. The first signal sets that and calls `stopping`. The second
/// signal ends the program with the shell's exit code, as in [`run_with_progress`]. After a stop, the program must end with
/// [`stop_code`].
pub fn until_stopped<T: Send>(
    work: impl FnOnce(&AtomicBool) -> T + Send,
    stopping: impl FnOnce(),
) -> T {
    let is_stopped = AtomicBool::new(false);
    let Ok(mut interruption) = Interruption::hold() else { return work(&is_stopped) };
    let mut stopping = Some(stopping);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&is_stopped));
        while !worker.is_finished() {
            match interruption.wait_patiently_until(clock::now() + POLL_INTERVAL) {
                Ok(Some(code)) => match stopping.take() {
                    Some(stopping) => {
                        is_stopped.store(true, Ordering::Relaxed);
                        STOP_CODE.store(code, Ordering::Relaxed);
                        stopping();
                    }
                    None => process::exit(i32::from(code)),
                },
                Ok(None) => {}
                Err(_) => break,
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The shell's exit code for the signal that stopped the work early; zero if there was none.
static STOP_CODE: AtomicU8 = AtomicU8::new(0);

/// The exit code after a signal stopped the work early, 128 + the signal's number; `None` if there was none.
pub fn stop_code() -> Option<u8> {
    Some(STOP_CODE.load(Ordering::Relaxed)).filter(|code| *code != 0)
}

/// A message to the progress display.
enum Message {
    Poll,
    End,
}

fn supervise<T: Send>(
    work: impl FnOnce() -> T + Send,
    mut watch: impl FnMut(Message),
    interrupted: impl FnOnce(),
) -> T {
    // From now on signals are blocked on this thread and the threads it starts, and must be polled.
    let Ok(mut interruption) = Interruption::hold() else { return work() };
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            watch(Message::Poll);
            match interruption.wait_until(clock::now() + POLL_INTERVAL) {
                Ok(Some(code)) => {
                    watch(Message::End);
                    interrupted();
                    process::exit(i32::from(code));
                }
                Ok(None) => {}
                Err(_) => break,
            }
        }
        watch(Message::End);
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Estimated seconds until `total` runs are done; `None` before the first one.
fn time_left(passed: Duration, done: usize, total: usize) -> Option<f64> {
    let each = passed.as_secs_f64() / done as f64;
    (done > 0).then(|| each * total.saturating_sub(done) as f64)
}

/// A bar on a terminal, otherwise a plain line every few seconds.
enum ProgressDisplay {
    Bar(ProgressBar),
    Lines { total: usize, unit: &'static str, began: Time, next: Time },
}

/// The progress of work with a known duration.
pub struct RealTimeProgress {
    display: ProgressDisplay,
    total: Duration,
}

impl RealTimeProgress {
    /// Progress of work that takes `total`.
    pub fn new(total: Duration) -> RealTimeProgress {
        let seconds = total.as_secs_f64().ceil() as usize;
        RealTimeProgress { display: ProgressDisplay::new(seconds, "s"), total }
    }

    /// Shows that the work has run for `passed`, and removes the display at its end.
    pub fn show(&mut self, passed: Duration) {
        if passed >= self.total {
            return self.display.clear();
        }
        let left = (self.total - passed).as_secs_f64();
        self.display.show_with(passed.as_secs_f64() as usize, Some(left));
    }
}

impl ProgressDisplay {
    fn new(total: usize, unit: &'static str) -> ProgressDisplay {
        if is_quiet() {
            return ProgressDisplay::Bar(ProgressBar::hidden());
        }
        if !io::stderr().is_terminal() {
            let now = clock::now();
            return ProgressDisplay::Lines { total, unit, began: now, next: now + LINE_INTERVAL };
        }
        let bar = ProgressBar::new(total as u64);
        // The message shows the remaining time, once a run is done.
        let style =
            ProgressStyle::with_template(&format!("[{{bar:24}}] {{pos}}/{{len}} {unit}{{msg}}"));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        ProgressDisplay::Bar(bar)
    }

    fn show(&mut self, done: usize) {
        let left = match self {
            ProgressDisplay::Bar(bar) => (done > 0).then(|| bar.eta().as_secs_f64()),
            ProgressDisplay::Lines { total, began, .. } => {
                time_left(clock::now().since(*began), done, *total)
            }
        };
        self.show_with(done, left);
    }

    /// Shows the number done, and the remaining seconds if known.
    fn show_with(&mut self, done: usize, left: Option<f64>) {
        let left = left.map_or(String::new(), |left| format!(", {left:.0} s to go"));
        match self {
            ProgressDisplay::Bar(bar) => {
                bar.set_position(done as u64);
                bar.set_message(left);
            }
            ProgressDisplay::Lines { total, unit, next, .. } => {
                let now = clock::now();
                if now >= *next {
                    *next = now + LINE_INTERVAL;
                    note!("{done}/{total} {unit}{left}");
                }
            }
        }
    }

    fn clear(&self) {
        if let ProgressDisplay::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_unknown_until_a_run_completes() {
        assert_eq!(time_left(Duration::from_secs(10), 0, 4), None);
        // 10 s for one run: 30 s for three.
        assert_eq!(time_left(Duration::from_secs(10), 1, 4), Some(30.0));
    }
}
