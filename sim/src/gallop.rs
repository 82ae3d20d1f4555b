//! A binary search that begins at the end: most questions about a log are about its newest part.

/// How many of the first `n` places `comes_first` is true of, where those come before all others. Costs the logarithm of the
/// answer's distance from the end.
#[inline]
pub fn count_from_end(n: u32, comes_first: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high, mut step) = (0, n, 1);
    while high > 0 {
        let probe = high.saturating_sub(step);
        if comes_first(probe) {
            low = probe + 1;
            break;
        }
        high = probe;
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if comes_first(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_border_of_every_length_is_found() {
        for n in 0..70 {
            for border in 0..=n {
                assert_eq!(count_from_end(n, |at| at < border), border, "{border} of {n}");
            }
        }
    }
}
