use super::*;
use plimsoll_plan::{Flushes, OperationId, Pauses, VariableId};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn direction(size: u64) -> plimsoll_plan::Direction {
    plimsoll_plan::Direction {
        row: OperationId(0),
        size: Value::Const(size),
        align: size,
    }
}

/// Sequential reads of 4 KiB without an end.
fn reads() -> Transfers {
    Transfers::new(Some(direction(4096)), None)
}

fn random(spread: Spread) -> OffsetOrder {
    OffsetOrder::Random {
        spread,
        percent: 100,
    }
}

fn constant(value: Value) -> Result<Number, String> {
    let value = value.constant();
    value
        .map(Number::Same)
        .ok_or_else(|| "a random variable".into())
}

fn sequence(plan: &Transfers, files: &[u64]) -> Sequence {
    Sequence::new(plan, 0, files, Stream::new(7), constant).unwrap()
}

/// The next transfers of a job, as file and block of 4 KiB.
fn blocks(sequence: &mut Sequence, count: usize) -> Vec<(u32, u64)> {
    let next = |_| match sequence.next() {
        Next::Transfer(t) => (t.file, t.offset / 4096),
        other => panic!("{other:?}"),
    };
    (0..count).map(next).collect()
}

fn all(sequence: &mut Sequence) -> Vec<Next> {
    let next = |_: ()| Some(sequence.next()).filter(|next| *next != Next::End);
    std::iter::repeat_n((), 100_000).map_while(next).collect()
}

#[test]
fn files_take_turns_and_each_is_read_in_order() {
    let files = [3 * 4096, 2 * 4096];
    let mut in_turn = sequence(&reads(), &files);
    // fio gives the order of the first five; the pass then begins again.
    let expected = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 0), (1, 0)];
    assert_eq!(blocks(&mut in_turn, 7), expected);
    let one_by_one = Transfers {
        next_file: FileOrder::Sequential,
        ..reads()
    };
    let expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (0, 0)];
    assert_eq!(blocks(&mut sequence(&one_by_one, &files), 6), expected);
    let two_each = Transfers {
        transfers_per_file: 2,
        ..reads()
    };
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 0)];
    assert_eq!(blocks(&mut sequence(&two_each, &files), 6), expected);
}

#[test]
fn reads_and_writes_have_positions_of_their_own() {
    let both = Transfers {
        writes: Some(direction(4096)),
        read_percent: 40,
        bytes: Some(1 << 20),
        ..reads()
    };
    let mut next = [0, 0];
    let mut counts = [0u64; 2];
    for operation in all(&mut sequence(&both, &[1 << 20])) {
        let Next::Transfer(t) = operation else {
            panic!("{operation:?}")
        };
        assert_eq!(t.offset, next[t.way as usize]);
        next[t.way as usize] += 4096;
        counts[t.way as usize] += 1;
    }
    assert_eq!(counts[0] + counts[1], 256);
    // A binomial count of 256 with a probability of 0.4 has a standard deviation of 7.8.
    assert!((64..=141).contains(&counts[0]), "{counts:?}");
}

/// fio restarts the direction that has reached the end of the only file of a job with `time_based`, and both directions
/// of a job with `loops` or `io_size`.
#[test]
fn only_a_job_without_an_end_restarts_its_directions_apart() {
    for (bytes, apart) in [(None, true), (Some(1 << 30), false)] {
        let both = Transfers {
            writes: Some(direction(4096)),
            read_percent: 75,
            bytes,
            ..reads()
        };
        let mut sequence = sequence(&both, &[8 * 4096]);
        let mut next = [0; 2];
        let (mut restarts, mut writes_restarted) = (0, 0);
        for _ in 0..1000 {
            let Next::Transfer(t) = sequence.next() else {
                panic!("the job has no end")
            };
            let (way, block) = (t.way as usize, t.offset / 4096);
            if t.way == Way::Read && next[0] == 8 {
                assert_eq!(block, 0);
                restarts += 1;
                if !apart {
                    next[1] = 0;
                }
            } else if block != next[way] {
                assert_eq!((block, next[way]), (0, 8));
                writes_restarted += 1;
                if !apart {
                    next[0] = 0;
                }
            }
            next[way] = block + 1;
        }
        assert!(restarts > 50, "{restarts}");
        assert_eq!(writes_restarted > 10, apart, "{writes_restarted}");
    }
}

#[test]
fn the_end_of_a_file_that_is_no_block_is_left_out() {
    let mut odd = sequence(&reads(), &[2 * 4096 + 100]);
    assert_eq!(blocks(&mut odd, 4), [(0, 0), (0, 1), (0, 0), (0, 1)]);
    let none = Sequence::new(&reads(), 0, &[4095, 100], Stream::new(1), constant);
    let error = none.err().unwrap();
    assert_eq!(
        error,
        "no transfer of 4096 bytes fits the files from byte 0 on"
    );
}

#[test]
fn a_process_begins_at_its_own_offset_and_stays_in_its_span() {
    let part = Transfers {
        offset: 4096,
        offset_increment: 8192,
        span: 8192,
        ..reads()
    };
    let third = Sequence::new(&part, 2, &[1 << 20], Stream::new(7), constant);
    let expected = [(0, 5), (0, 6), (0, 5)];
    assert_eq!(blocks(&mut third.unwrap(), 3), expected);
}

#[test]
fn skipped_bytes_lie_between_transfers() {
    let skipping = Transfers {
        order: OffsetOrder::Sequential { skip: 8192 },
        ..reads()
    };
    let mut skipping = sequence(&skipping, &[7 * 4096]);
    assert_eq!(blocks(&mut skipping, 4), [(0, 0), (0, 3), (0, 6), (0, 0)]);
}

#[test]
fn a_job_ends_after_its_bytes_or_its_transfers() {
    let bytes = Transfers {
        bytes: Some(3 * 4096 + 1),
        ..reads()
    };
    assert_eq!(all(&mut sequence(&bytes, &[8192])).len(), 4);
    let transfers = Transfers {
        transfers: Some(3),
        ..bytes
    };
    assert_eq!(all(&mut sequence(&transfers, &[8192])).len(), 3);
}

#[test]
fn a_flush_follows_every_few_writes_and_names_their_file() {
    let writes = Transfers {
        reads: None,
        writes: Some(direction(4096)),
        bytes: Some(5 * 4096),
        flushes: Some(Flushes {
            row: OperationId(1),
            after_writes: Some(2),
            data_only: false,
            at_end: true,
        }),
        ..reads()
    };
    let done = all(&mut sequence(&writes, &[3 * 4096, 2 * 4096]));
    let text: Vec<String> = done
        .iter()
        .map(|next| match next {
            Next::Transfer(t) => format!("{}:{}", t.file, t.offset / 4096),
            Next::Flush(file) => format!("flush {file}"),
            Next::End => "end".into(),
        })
        .collect();
    assert_eq!(
        text.join(" "),
        "0:0 1:0 flush 1 0:1 1:1 flush 1 0:2",
        "the flush at the end is of the workers"
    );
}

#[test]
fn a_pause_follows_every_few_transfers() {
    let paused = Transfers {
        transfers: Some(7),
        pauses: Some(Pauses {
            nanoseconds: 1,
            after_transfers: 3,
        }),
        ..reads()
    };
    let pauses = all(&mut sequence(&paused, &[1 << 20]));
    let pauses: Vec<bool> = pauses
        .iter()
        .map(|next| matches!(next, Next::Transfer(t) if t.pauses))
        .collect();
    assert_eq!(pauses, [false, false, true, false, false, true, false]);
}

#[test]
fn a_run_follows_each_random_offset_or_repeats_it() {
    let runs = |repeats_offset| Transfers {
        order: random(Spread::Uniform),
        run: 3,
        repeats_offset,
        ..reads()
    };
    for (repeats, step) in [(false, 1), (true, 0)] {
        let seen = blocks(&mut sequence(&runs(repeats), &[1 << 30]), 300);
        for run in seen.chunks(3) {
            let expected: Vec<u64> = (0..3).map(|n| run[0].1 + n * step).collect();
            let found: Vec<u64> = run.iter().map(|(_, block)| *block).collect();
            // A run that reaches the end of the file begins again elsewhere; the file has 262 144 blocks.
            assert_eq!(found, expected);
        }
    }
}

/// Blocks are drawn once; the transfers of a run after the first may visit a block again, as in fio.
#[test]
fn runs_begin_at_each_block_once_in_a_pass() {
    let runs = Transfers {
        order: random(Spread::Once),
        run: 3,
        bytes: Some(1000 * 4096),
        ..reads()
    };
    let seen = blocks(&mut sequence(&runs, &[50 * 4096]), 1000);
    let follows = seen.windows(2).filter(|w| w[1].1 == w[0].1 + 1).count();
    // Two of three transfers follow, except at the end of the file.
    assert!((600..=680).contains(&follows), "{follows}");
}

/// A run of reads and writes in two files can meet a file whose blocks are all drawn.
#[test]
fn runs_in_both_directions_stay_in_their_files() {
    let runs = Transfers {
        writes: Some(direction(4096)),
        order: random(Spread::Once),
        run: 3,
        ..reads()
    };
    for seed in 0..20 {
        let sizes = [8 * 4096, 4 * 4096];
        let sequence = Sequence::new(&runs, 0, &sizes, Stream::new(seed), constant);
        for (file, block) in blocks(&mut sequence.unwrap(), 1000) {
            assert!(block < [8, 4][file as usize], "{file} {block}");
        }
    }
}

#[test]
fn a_part_of_the_offsets_follows_the_transfer_before() {
    let mixed = Transfers {
        order: OffsetOrder::Random {
            spread: Spread::Uniform,
            percent: 25,
        },
        ..reads()
    };
    let seen = blocks(&mut sequence(&mixed, &[1 << 34]), 10_000);
    let following = seen.windows(2).filter(|w| w[1].1 == w[0].1 + 1).count();
    // The mean is 7500, with a standard deviation of 43.
    assert!((7280..7720).contains(&following), "{following}");
}

#[test]
fn sizes_are_drawn_and_cut_at_the_end_of_the_file() {
    let variable = plimsoll_plan::Variable {
        round: 1024,
        ..plimsoll_plan::Variable::new(
            "size",
            plimsoll_plan::Distribution::Uniform {
                lower: 1024.0,
                upper: 8192.0,
            },
        )
    };
    let drawn = Transfers {
        reads: Some(plimsoll_plan::Direction {
            row: OperationId(0),
            size: Value::Draw(VariableId(0)),
            align: 1024,
        }),
        bytes: Some(100 << 10),
        ..reads()
    };
    let number = |_| variable.sampler().map(Number::Drawn);
    let sequence = Sequence::new(&drawn, 0, &[100 << 10], Stream::new(3), number);
    let mut at = 0;
    let mut sizes = BTreeMap::<u64, u32>::new();
    for next in all(&mut sequence.unwrap()) {
        let Next::Transfer(t) = next else { panic!() };
        assert_eq!(t.offset, at);
        at += t.len;
        *sizes.entry(t.len).or_default() += 1;
    }
    assert_eq!(at, 100 << 10, "one pass, without a gap");
    assert!(
        sizes.keys().all(|s| s % 1024 == 0) && sizes.len() > 4,
        "{sizes:?}"
    );
    // A mark for each block of 8 TiB would take 1 GiB.
    let once = Transfers {
        order: random(Spread::Once),
        ..drawn
    };
    let refused = Sequence::new(&once, 0, &[8 << 40], Stream::new(3), number);
    assert!(refused.is_err_and(|e| e.contains("norandommap")));
}

/// Share of the transfers that lie in the most popular `percent` percent of 1000 blocks.
fn share_of_popular(spread: Spread, percent: usize) -> f64 {
    let plan = Transfers {
        order: random(spread),
        ..reads()
    };
    let mut counts = vec![0u32; 1000];
    for (_, block) in blocks(&mut sequence(&plan, &[1000 * 4096]), 100_000) {
        counts[block as usize] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let popular: u32 = counts[..percent * 10].iter().sum();
    f64::from(popular) / 1000.0
}

#[test]
fn distributions_favour_blocks_as_their_parameters_say() {
    let pareto = share_of_popular(Spread::Pareto { h: 0.2 }, 20);
    assert!((pareto - 80.0).abs() < 1.0, "{pareto}");
    // Of a Zipf distribution, the first n ranks have the share H(n, θ) / H(1000, θ).
    let harmonic = |n: u32| (1..=n).map(|k| f64::from(k).powf(-1.2)).sum::<f64>();
    let zipf = share_of_popular(Spread::Zipf { theta: 1.2 }, 5);
    let expected = 100.0 * harmonic(50) / harmonic(1000);
    assert!((zipf - expected).abs() < 1.0, "{zipf} {expected}");
}

#[test]
fn popular_blocks_are_scattered_over_the_file() {
    let plan = Transfers {
        order: random(Spread::Zipf { theta: 2.0 }),
        ..reads()
    };
    let seen = blocks(&mut sequence(&plan, &[1000 * 4096]), 1000);
    let upper = seen.iter().filter(|(_, block)| *block >= 500).count();
    let mut distinct: Vec<u64> = seen.iter().map(|(_, block)| *block).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let in_upper_half = distinct.iter().filter(|block| **block >= 500).count();
    assert!(
        upper > 0 && in_upper_half * 4 > distinct.len(),
        "{distinct:?}"
    );
}

#[test]
fn a_normal_distribution_lies_around_the_middle() {
    let plan = Transfers {
        order: random(Spread::Normal {
            deviation_percent: 10.0,
        }),
        ..reads()
    };
    let seen = blocks(&mut sequence(&plan, &[1000 * 4096]), 100_000);
    let offsets: Vec<f64> = seen.iter().map(|(_, block)| *block as f64 + 0.5).collect();
    let n = offsets.len() as f64;
    let mean = offsets.iter().sum::<f64>() / n;
    let deviation = (offsets.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!(
        (mean - 500.0).abs() < 2.0 && (deviation - 100.0).abs() < 2.0,
        "{mean} {deviation}"
    );
}

#[test]
fn zones_get_their_shares() {
    let zone = |transfers_percent, size_percent| Zone {
        transfers_percent,
        size_percent,
    };
    let plan = Transfers {
        order: random(Spread::Zones {
            zones: vec![zone(60.0, 10.0), zone(30.0, 20.0), zone(10.0, 70.0)],
        }),
        ..reads()
    };
    let seen = blocks(&mut sequence(&plan, &[1000 * 4096]), 100_000);
    let within = |range: std::ops::Range<u64>| {
        seen.iter()
            .filter(|(_, block)| range.contains(block))
            .count() as f64
            / 1000.0
    };
    let shares = [within(0..100), within(100..300), within(300..1000)];
    for (share, expected) in shares.iter().zip([60.0, 30.0, 10.0]) {
        assert!((share - expected).abs() < 1.0, "{shares:?}");
    }
}

proptest! {
    #[test]
    fn each_block_comes_once_before_any_comes_again(
        files in prop::collection::vec(1u64..40, 1..5), seed: u64, in_turn: bool, both: bool,
    ) {
        let sizes: Vec<u64> = files.iter().map(|blocks| blocks * 4096).collect();
        let plan = Transfers {
            writes: both.then(|| direction(4096)),
            order: random(Spread::Once),
            next_file: if in_turn { FileOrder::RoundRobin } else { FileOrder::Random },
            ..reads()
        };
        let mut sequence = Sequence::new(&plan, 0, &sizes, Stream::new(seed), constant).unwrap();
        let pass: u64 = files.iter().sum();
        let mut orders = Vec::new();
        for _ in 0..3 {
            let seen = blocks(&mut sequence, pass as usize);
            orders.push(seen.clone());
            let mut seen = seen;
            seen.sort_unstable();
            let expected: Vec<(u32, u64)> = (0..)
                .zip(&files)
                .flat_map(|(file, blocks)| (0..*blocks).map(move |block| (file, block)))
                .collect();
            prop_assert_eq!(seen, expected);
        }
        if pass > 60 {
            prop_assert_ne!(&orders[0], &orders[1], "each pass has an order of its own");
        }
    }

    #[test]
    fn each_byte_comes_once_in_a_pass_if_sizes_are_drawn(blocks in 1u64..200, seed: u64) {
        let variable = plimsoll_plan::Variable {
            round: 1024,
            ..plimsoll_plan::Variable::new(
                "size",
                plimsoll_plan::Distribution::Uniform { lower: 1024.0, upper: 6144.0 },
            )
        };
        let drawn = plimsoll_plan::Direction {
            row: OperationId(0),
            size: Value::Draw(VariableId(0)),
            align: 1024,
        };
        let plan = Transfers {
            reads: Some(drawn),
            writes: Some(drawn),
            order: random(Spread::Once),
            bytes: Some(3 * blocks * 1024),
            ..reads()
        };
        let number = |_| variable.sampler().map(Number::Drawn);
        let sizes = [blocks * 1024];
        let mut sequence = Sequence::new(&plan, 0, &sizes, Stream::new(seed), number).unwrap();
        let mut visits = vec![0; blocks as usize];
        let mut bytes = 0;
        for next in all(&mut sequence) {
            let Next::Transfer(t) = next else { panic!() };
            bytes += t.len;
            for block in t.offset / 1024..(t.offset + t.len) / 1024 {
                visits[block as usize] += 1;
            }
            let pass = bytes.div_ceil(blocks * 1024);
            prop_assert!(visits.iter().all(|n| *n <= pass), "{:?}", t);
        }
        prop_assert!(visits.iter().all(|n| *n == 3), "{:?}", visits);
    }

    #[test]
    fn the_same_seed_gives_the_same_transfers(seed: u64) {
        let plan = Transfers {
            writes: Some(direction(8192)),
            order: random(Spread::Uniform),
            ..reads()
        };
        let new = || Sequence::new(&plan, 0, &[1 << 20], Stream::new(seed), constant).unwrap();
        prop_assert_eq!(blocks(&mut new(), 100), blocks(&mut new(), 100));
    }
}
