//! Tests of the choice of entries.

use super::*;

fn entries(len: u32, exists: impl Fn(u32) -> bool) -> Entries {
    let mut words = vec![0u64; len.div_ceil(64) as usize];
    (0..len)
        .filter(|i| exists(*i))
        .for_each(|i| words[i as usize / 64] |= 1 << (i % 64));
    Entries::new(len, |at| words[at as usize], RankPart::ALL_ENTRIES)
}

fn take(e: &Entries, kind: Existence, cursor: &mut BlockCursor) -> u32 {
    match e.choose(kind, cursor) {
        Choice::Taken(i) => i,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_single_worker_goes_round_one_by_one() {
    for len in [1u32, 5, 100, 10_000] {
        let e = entries(len, |_| true);
        let mut cursor = BlockCursor::default();
        for round in 0..2 * len {
            let i = take(&e, Existence::Existing, &mut cursor);
            assert_eq!(i, round % len);
            e.put(i, Existence::Existing);
        }
    }
}

#[test]
fn busy_entries_are_passed_over_and_the_last_is_not_there_to_take() {
    let e = entries(3, |_| true);
    let mut cursor = BlockCursor::default();
    let all: Vec<_> = (0..3)
        .map(|_| take(&e, Existence::Existing, &mut cursor))
        .collect();
    assert_eq!(all, [0, 1, 2]);
    assert_eq!(e.choose(Existence::Existing, &mut cursor), Choice::AllBusy);
    assert_eq!(
        e.choose(Existence::Missing, &mut BlockCursor::default()),
        Choice::AllBusy,
        "one of them may be about to go"
    );
    [0, 1, 2]
        .into_iter()
        .for_each(|i| e.put(i, Existence::Existing));
    assert_eq!(
        e.choose(Existence::Missing, &mut BlockCursor::default()),
        Choice::None
    );
    assert!(matches!(
        e.choose(Existence::Existing, &mut cursor),
        Choice::Taken(_)
    ));
}

#[test]
fn a_part_is_used_up_whatever_others_have() {
    for (len, ranks) in [(10u32, 2u32), (10, 3), (200, 7), (64, 64)] {
        let mut all = Vec::new();
        for rank in 0..ranks {
            let part = RankPart { rank, ranks };
            let e = Entries::new(len, |_| 0, part);
            let ours = (0..len).filter(|i| part.has(*i));
            assert_eq!(part.count(len), ours.count() as u64);
            let mut cursor = BlockCursor::default();
            let mut own = Vec::new();
            while let Choice::Taken(i) = e.choose(Existence::Missing, &mut cursor) {
                own.push(i);
            }
            assert_eq!(e.choose(Existence::Missing, &mut cursor), Choice::AllBusy);
            for i in &own {
                e.set_existence(Existence::Existing);
                e.put(*i, Existence::Existing);
            }
            assert_eq!(e.choose(Existence::Missing, &mut cursor), Choice::None);
            assert_eq!(e.choose_at(Existence::Missing, 1), Choice::None);
            let claimed = (0..len).filter(|i| e.claim(*i) != Choice::None);
            assert_eq!(claimed.count(), own.len(), "only its own");
            all.extend(own);
        }
        all.sort_unstable();
        assert_eq!(all, (0..len).collect::<Vec<_>>());
    }
}

#[test]
fn a_rare_entry_is_found_and_the_cursor_continues_from_there() {
    let e = entries(1_000_000, |i| i != 700_000 && i != 900_000);
    let mut cursor = BlockCursor::default();
    assert_eq!(take(&e, Existence::Missing, &mut cursor), 700_000);
    e.set_existence(Existence::Existing);
    e.put(700_000, Existence::Existing);
    assert_eq!(take(&e, Existence::Missing, &mut cursor), 900_000);
    e.set_existence(Existence::Existing);
    e.put(900_000, Existence::Existing);
    assert_eq!(e.choose(Existence::Missing, &mut cursor), Choice::None);
    assert_eq!(e.existing_count(), 1_000_000);
}

#[test]
fn a_number_is_taken_or_the_next_that_qualifies() {
    let e = entries(10, |i| i != 3);
    assert_eq!(e.choose_at(Existence::Existing, 13), Choice::Taken(4));
    assert_eq!(e.choose_at(Existence::Missing, 5), Choice::Taken(3));
    assert_eq!(e.claim(3), Choice::AllBusy);
    assert_eq!(e.claim(4), Choice::AllBusy);
    assert_eq!(e.claim(9), Choice::Taken(9));
}

#[test]
fn two_workers_together_visit_every_entry() {
    let e = entries(5000, |_| true);
    let (mut a, mut b) = (BlockCursor::default(), BlockCursor::default());
    let mut seen = vec![0; 5000];
    for _ in 0..2500 {
        for cursor in [&mut a, &mut b] {
            let i = take(&e, Existence::Existing, cursor);
            seen[i as usize] += 1;
            e.put(i, Existence::Existing);
        }
    }
    let once = seen.iter().filter(|n| **n == 1).count();
    assert!(once > 4700, "{once} of 5000 were visited once");
}

#[test]
fn each_worker_of_a_large_set_takes_a_block_at_a_time() {
    // A block has as many entries as the largest power of two that leaves at least 64 blocks, at most a cache line.
    for (len, block) in [
        (1u32, 1u32),
        (127, 1),
        (128, 2),
        (64 * 4 - 1, 2),
        (64 * 4, 4),
        (10_000, 128),
        (64 * LINE_BITS, LINE_BITS),
        (1_000_000, LINE_BITS),
    ] {
        let e = entries(len, |_| true);
        let (mut a, mut b) = (BlockCursor::default(), BlockCursor::default());
        let next = |cursor: &mut BlockCursor| {
            let i = take(&e, Existence::Existing, cursor);
            e.put(i, Existence::Existing);
            i
        };
        assert_eq!(next(&mut a), 0, "{len}");
        assert_eq!(next(&mut b), block % len, "{len}");
        let rest: Vec<u32> = (1..block).map(|_| next(&mut a)).collect();
        assert_eq!(rest, (1..block).collect::<Vec<_>>(), "{len}");
        if len > 1 {
            assert_eq!(next(&mut a), 2 * block % len, "{len}");
        }
    }
}

#[test]
fn the_last_block_may_be_shorter_and_the_first_follows_it() {
    // The set has 79 blocks of 2 entries, except that the last block has one entry.
    let e = entries(157, |_| true);
    let mut cursor = BlockCursor::default();
    for round in 0..3 {
        for i in 0..157 {
            assert_eq!(
                take(&e, Existence::Existing, &mut cursor),
                i,
                "round {round}"
            );
            e.put(i, Existence::Existing);
        }
    }
}

#[test]
fn workers_continue_behind_a_rare_entry() {
    // With blocks of 128 entries, entry 5000 is in block 39, which ends before entry 5120.
    let missing = [5000, 5003, 5119, 5120, 9999];
    let e = entries(10_000, |i| !missing.contains(&i));
    let (mut a, mut b) = (BlockCursor::default(), BlockCursor::default());
    assert_eq!(take(&e, Existence::Missing, &mut a), 5000);
    assert_eq!(take(&e, Existence::Missing, &mut b), 5120, "the next block");
    assert_eq!(take(&e, Existence::Missing, &mut a), 5003);
    assert_eq!(take(&e, Existence::Missing, &mut a), 5119);
    assert_eq!(take(&e, Existence::Missing, &mut b), 9999);
    e.put(5003, Existence::Missing);
    // After the last block comes the first block, whose search finds block 39 again.
    assert_eq!(take(&e, Existence::Missing, &mut a), 5003);
    assert_eq!(e.choose(Existence::Missing, &mut b), Choice::AllBusy);
}

#[test]
fn a_number_is_taken_modulo_the_set_and_the_search_goes_round() {
    let e = entries(10, |i| i < 4);
    assert_eq!(e.choose_at(Existence::Existing, 23), Choice::Taken(3));
    assert_eq!(e.choose_at(Existence::Existing, 23), Choice::Taken(0));
    assert_eq!(e.choose_at(Existence::Existing, u64::MAX), Choice::Taken(1));
    assert_eq!(e.choose_at(Existence::Missing, 0), Choice::Taken(4));
    assert_eq!(e.choose_at(Existence::Existing, 2), Choice::Taken(2));
    assert_eq!(e.choose_at(Existence::Existing, 2), Choice::AllBusy);
    let none = entries(0, |_| true);
    assert_eq!(none.choose_at(Existence::Existing, 5), Choice::None);
    assert_eq!(
        none.choose(Existence::Missing, &mut BlockCursor::default()),
        Choice::None
    );
}

#[test]
fn entries_are_counted_while_they_are_busy() {
    let e = entries(130, |i| i % 3 == 0);
    let existing = (0..130).filter(|i| i % 3 == 0).count() as u64;
    assert_eq!((e.len(), e.existing_count()), (130, existing));
    assert!(e.are_idle());
    assert_eq!(e.claim(129), Choice::Taken(129));
    assert_eq!(e.existing_count(), existing, "a busy entry exists");
    assert!(!e.are_idle() && !e.is_idle_existing(129) && !e.is_idle_missing(129));
    e.set_existence(Existence::Missing);
    assert_eq!(e.existing_count(), existing - 1);
    e.put(129, Existence::Missing);
    assert!(e.are_idle() && e.is_idle_missing(129));
    assert_eq!(e.claim(129), Choice::None);
    // Consecutive entries are in different words, so that remembering the word of the latest busy entry does not help.
    for i in [129, 0, 64, 128, 1] {
        let kind = match e.is_idle_existing(i) {
            true => Existence::Existing,
            false => Existence::Missing,
        };
        assert_eq!(e.choose_at(kind, i.into()), Choice::Taken(i));
        assert!(!e.are_idle(), "{i} is busy");
        e.put(i, kind);
        assert!(e.are_idle());
    }
    // `are_idle` detects an entry that was released as missing although no call of `set_existence` counted the
    // deletion.
    assert_eq!(e.claim(0), Choice::Taken(0));
    e.put(0, Existence::Missing);
    assert!(!e.are_idle());
}

#[test]
fn none_is_reported_only_if_no_entry_can_become_of_the_kind() {
    let kinds = [Existence::Existing, Existence::Missing];
    for kind in kinds {
        let e = entries(3, |_| kind == Existence::Existing);
        assert!(e.has_idle(kind) && !e.has_idle(kind.other()));
        assert_eq!(e.nothing(kind), Choice::AllBusy, "they are of the kind");
        assert_eq!(e.nothing(kind.other()), Choice::None);
        assert_eq!(e.choose_at(kind, 1), Choice::Taken(1));
        assert_eq!(
            e.nothing(kind.other()),
            Choice::AllBusy,
            "it may become one"
        );
        e.set_existence(kind.other());
        e.put(1, kind.other());
        assert_eq!(e.nothing(kind.other()), Choice::AllBusy, "it is one");
        assert!(e.has_idle(kind) && e.has_idle(kind.other()));
    }
    assert_eq!(
        kinds.map(Existence::other),
        [Existence::Missing, Existence::Existing]
    );
}

#[test]
fn a_part_has_its_entries_of_every_word() {
    for (len, ranks) in [(1u32, 1u32), (63, 2), (64, 3), (65, 4), (200, 7), (130, 64)] {
        for rank in 0..ranks {
            let part = RankPart { rank, ranks };
            for word in 0..len.div_ceil(64) as usize {
                let first = word as u32 * 64;
                let ours = (first..len.min(first + 64)).filter(|i| i % ranks == rank);
                let want = ours.fold(0u64, |w, i| w | 1 << (i - first));
                assert_eq!(part.mask(word, len), want, "{part:?} of {len}, word {word}");
            }
        }
    }
    // Rank 1 of 2 has every second existing entry and every second missing entry.
    let part = RankPart { rank: 1, ranks: 2 };
    let e = Entries::new(100, |at| if at == 0 { u64::MAX } else { 0 }, part);
    assert_eq!(e.existing_count(), 32);
    let idle = |missing: bool| {
        let all = 0..100;
        all.filter(|i| match missing {
            true => e.is_idle_missing(*i),
            false => e.is_idle_existing(*i),
        })
        .collect::<Vec<u32>>()
    };
    assert_eq!(idle(false), (0..32).map(|i| 2 * i + 1).collect::<Vec<_>>());
    assert_eq!(idle(true), (32..50).map(|i| 2 * i + 1).collect::<Vec<_>>());
    assert!(e.are_idle());
}
