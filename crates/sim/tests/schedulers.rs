//! The fast scheduler does what the obvious one does.

use proptest::prelude::*;
use sweetspot_sim::scheduler::{Key, Obvious, QuadHeap, Scheduler};
use sweetspot_units::Time;

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

proptest! {
    #[test]
    fn the_quad_heap_gives_back_what_the_obvious_heap_does(steps in steps()) {
        let (mut fast, mut slow) = (QuadHeap::default(), Obvious::default());
        for (event, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(at, order) => {
                    let key = Key::new(Time::from_nanos(at), order, event as u32);
                    fast.push(key);
                    slow.push(key);
                }
                Step::Peek => prop_assert_eq!(fast.peek(), slow.peek()),
                Step::Pop => prop_assert_eq!(fast.pop(), slow.pop()),
            }
            prop_assert_eq!(fast.len(), slow.len());
            prop_assert_eq!(fast.is_empty(), slow.is_empty());
        }
    }
}

#[test]
fn keys_tell_what_they_were_made_of() {
    let key = Key::new(Time::from_nanos(7), 3, 9);
    assert_eq!((key.at(), key.event()), (Time::from_nanos(7), 9));
    assert!(key < Key::new(Time::from_nanos(7), 4, 0));
    assert!(key < Key::NEVER);
}
