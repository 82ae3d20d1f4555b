//! "Did you mean …?": the nearest valid name to one that does not exist.

/// Longest name that is worth a comparison.
const LONGEST: usize = 80;

/// The candidate nearest to `name` by edit distance, if one is near enough to be a slip: a third of the longer name may
/// differ. Letter case, `-` and `_` count as equal. The first of equally near ones wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let wanted = fold(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        let folded = fold(candidate);
        let longer = wanted.chars().count().max(folded.chars().count());
        let allowed = (longer / 3).max(1);
        // One letter for another of length one is no slip: `x` is not near `h`.
        if longer <= 1 && wanted != folded {
            continue;
        }
        if wanted.len().abs_diff(folded.len()) > allowed * 4 {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&wanted, &folded);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, name)| name)
}

fn fold(name: &str) -> String {
    name.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let keys = ["bandwidth", "latency", "between"];
        assert_eq!(nearest("bandwith", keys), Some("bandwidth"));
        assert_eq!(nearest("Latency", keys), Some("latency"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest(&"b".repeat(10_000), keys), None);
        assert_eq!(nearest("power_loss", ["power-loss"]), Some("power-loss"));
    }
}
