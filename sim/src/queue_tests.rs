use super::*;
use proptest::prelude::*;

#[test]
fn by_time_then_in_the_order_pushed() {
    let mut q = EventQueue::new();
    for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (0, 'd'), (u64::MAX, 'e'), (3, 'f')] {
        q.push(Nanos(at), event);
    }
    assert_eq!((q.len(), q.peek_time(), q.peek()), (6, Some(Nanos(0)), Some((Nanos(0), &'d'))));
    assert_eq!(q.pop_until(Nanos(2)), Some((Nanos(0), 3, 'd')));
    assert_eq!(q.pop_until(Nanos(2)), None);
    let order: String = std::iter::from_fn(|| q.pop().map(|(_, _, e)| e)).collect();
    assert_eq!(order, "bface");
    assert!(q.is_empty() && q.peek_time().is_none() && q.pop().is_none());
    assert_eq!(q.push(Nanos(1), 'g'), 6);
}

proptest! {
    /// Against the plainest model: a list, sorted stably by time.
    #[test]
    fn like_a_stable_sort(steps in prop::collection::vec((0u64..40, any::<bool>()), 0..400)) {
        let mut q = EventQueue::new();
        let mut model: Vec<(u64, usize)> = Vec::new();
        for (n, (at, pop)) in steps.into_iter().enumerate() {
            if pop {
                let earliest = (0..model.len()).min_by_key(|i| model[*i].0);
                prop_assert_eq!(q.peek_time(), earliest.map(|i| Nanos(model[i].0)));
                let expected = earliest.map(|i| model.remove(i));
                prop_assert_eq!(q.pop().map(|(t, _, e)| (t.0, e)), expected);
            } else {
                q.push(Nanos(at), n);
                model.push((at, n));
            }
            prop_assert_eq!(q.len(), model.len());
        }
        let mut copy = q.clone();
        let rest: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        let again: Vec<_> = std::iter::from_fn(|| copy.pop()).collect();
        prop_assert_eq!(rest, again);
    }
}
