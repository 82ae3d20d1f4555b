use super::*;

fn sample() -> (Counts, Vec<String>) {
    let counts = [("runs", 4), ("fault.kill", 6), ("event.MIRRORING.elected", 2), ("role.STOPPING.markers.killed", 1)];
    let counts = counts.map(|(key, n)| (key.to_owned(), n)).into();
    let known = [
        "fault.kill",
        "fault.wipe",
        "event.MIRRORING.elected",
        "event.STOPPED.elected",
        "role.STOPPING.markers.killed",
    ];
    (counts, known.map(str::to_owned).into())
}

#[test]
fn runs_are_added_key_by_key() {
    let one = |key: &str, n| Counts::from([(key.to_owned(), n)]);
    let mut sum = one("runs", 1);
    add(&mut sum, &one("runs", 2));
    add(&mut sum, &one("fault.kill", 3));
    assert_eq!(sum, Counts::from([("runs".to_owned(), 3), ("fault.kill".to_owned(), 3)]));
}

#[test]
fn the_text_has_rates_and_names_what_was_never_reached() {
    let (counts, known) = sample();
    let text = text(&counts, &known);
    assert!(text.starts_with("census      4 runs\n"), "{text}");
    let line = |of: &str| {
        text.lines().find(|line| line.contains(of)).map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line("  kill").as_deref(), Some("kill 6 1.50 a run"));
    assert_eq!(line("never: wipe").as_deref(), Some("never: wipe"));
    assert_eq!(line("MIRRORING  ").as_deref(), Some("MIRRORING elected 2 (0.500)"));
    assert_eq!(line("STOPPING.markers").as_deref(), Some("STOPPING.markers killed 1 (0.250)"));
    assert!(text.contains("Faults (1 of 2 reached)"), "{text}");
    assert!(text.contains("never: STOPPED.elected"), "{text}");
}

#[test]
fn the_page_has_every_known_cell() {
    let (counts, known) = sample();
    let page = page(&counts, &known);
    assert!(page.contains("<th>STOPPED</th>") && page.contains("<td>2 (0.500)</td>"), "{page}");
    assert!(page.contains("1 never reached"), "{page}");
}
