//! The fast schedulers behave like the binary heap.

use proptest::prelude::*;
use sweetspot_sim::scheduler::{BinaryHeapScheduler, Key, QuadHeap, Scheduler, Wheel};
use sweetspot_units::{Duration, Time};

#[derive(Debug, Clone)]
enum Step {
    Push(u64, u32),
    Peek,
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0u64..50, any::<u32>()).prop_map(|(at, order)| Step::Push(at, order)),
        1 => Just(Step::Peek),
        2 => Just(Step::Pop),
    ];
    prop::collection::vec(step, 0..400)
}

/// Asserts that `fast` returns the same events as the binary heap. The times of `steps` are multiplied by `scale`
/// nanoseconds and relative to the last event, as in a simulation.
fn behaves_like_the_naive_scheduler(
    mut fast: impl Scheduler,
    steps: Vec<Step>,
    scale: u64,
) -> Result<(), TestCaseError> {
    let mut slow = BinaryHeapScheduler::default();
    let mut now = 0;
    for (event, step) in steps.into_iter().enumerate() {
        match step {
            Step::Push(ahead, order) => {
                let at = Time::from_nanos(now + ahead * scale);
                let key = Key::new(at, order, event as u32);
                fast.push(key);
                slow.push(key);
            }
            Step::Peek => prop_assert_eq!(fast.peek(), slow.peek()),
            Step::Pop => {
                let popped = slow.pop();
                prop_assert_eq!(fast.pop(), popped);
                now = popped.map_or(now, |key| key.at().as_nanos());
            }
        }
        prop_assert_eq!(fast.len(), slow.len());
        prop_assert_eq!(fast.is_empty(), slow.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_quad_heap_matches_the_reference_heap(steps in steps()) {
        behaves_like_the_naive_scheduler(QuadHeap::default(), steps, 1)?;
    }

    /// Covers times within a slot and times beyond both rings: 50 x 2^36 ns against 2^24 slots.
    #[test]
    fn the_wheel_matches_the_reference_heap(
        steps in steps(),
        scale in 0u32..37,
        gap in 1u64..5_000,
    ) {
        let wheel = Wheel::new(Duration::from_nanos(gap));
        behaves_like_the_naive_scheduler(wheel, steps, 1 << scale)?;
    }
}

/// Slots of 1 ns, 4096 to a ring: those from 8192 on are one slot of the outer ring.
#[test]
fn outer_ring_events_are_reported_once_when_they_come_near() {
    let mut wheel = Wheel::new(Duration::from_nanos(1));
    wheel.push(Key::new(Time::from_nanos(1), 0, 0));
    for event in 1..100 {
        wheel.push(Key::new(Time::from_nanos(8192 + u64::from(event)), 0, event));
    }
    wheel.pop();
    assert_eq!(wheel.poll_near(), None);
    wheel.peek();
    let mut near: Vec<u32> = core::iter::from_fn(|| wheel.poll_near()).collect();
    near.sort_unstable();
    assert_eq!(near, (1..100).collect::<Vec<u32>>());
    assert_eq!(wheel.len(), 99);
}

#[test]
fn keys_return_their_time_and_event_and_are_ordered() {
    let key = Key::new(Time::from_nanos(7), 3, 9);
    assert_eq!((key.at(), key.event()), (Time::from_nanos(7), 9));
    assert!(key < Key::new(Time::from_nanos(7), 4, 0));
    assert!(key < Key::NEVER);
}
