//! Any bytes as a ledger: read without a panic, and folded without a loss.

use std::collections::HashSet;

use outlive::job::{Launch, Outcome, is_id};
use outlive::ledger::{Book, fold, lines, parse};

/// What is known of each job.
fn known(book: &Book) -> Vec<(&Launch, &Option<Outcome>, bool)> {
    let mut known: Vec<_> = book.jobs.iter().map(|job| (&*job.launch, &job.outcome, job.emptied)).collect();
    known.sort_by_key(|(launch, _, _)| &launch.id);
    known
}

/// Lines that no reader takes in, in order.
fn unread(raw: &[u8]) -> Vec<&[u8]> {
    lines(raw).filter(|line| !parse(&[line, &b"\n"[..]].concat()).damage.is_empty()).collect()
}

pub(crate) fn check(raw: &[u8]) {
    let book = parse(raw);
    assert_eq!(lines(raw).count(), book.lines);
    for job in &book.jobs {
        assert!(is_id(&job.launch.id), "{:?} leads elsewhere", job.launch.id);
        assert!(book.job(&job.launch.id).is_some() && !book.forgotten.contains(&job.launch.id));
    }
    // Nobody compacts a ledger that a newer version has written to.
    if book.newer {
        return;
    }
    let keep_after = if raw.len().is_multiple_of(2) { book.last_seq / 2 } else { u64::MAX };
    let folded = fold(raw, &book, keep_after, &HashSet::new());
    let again = parse(&folded);
    assert_eq!(known(&again), known(&book));
    assert_eq!(unread(&folded), unread(raw));
    assert!(again.last_seq >= book.last_seq, "a number may be used twice");
}
