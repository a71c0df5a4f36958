//! What each element does, against times computed by hand.

mod common;

use common::{MS, messages, operation, paths, read, run, simulation, with_data, write};
use plimsoll_sim::{Operation, OperationClass, parse};

#[test]
fn a_link_takes_header_and_data_one_message_after_the_other() {
    // 1 MB/s: a byte takes 1 µs. Requests of writes carry their data, replies of reads.
    let link = "[link.wan]\nlatency = \"10ms\"\nbandwidth = \"1 MB/s\"\nheader = \"1000\"\n";
    let mut sim = simulation(&format!(
        "{link}{}",
        paths("\"wan.request\", \"wan.reply\"")
    ));
    sim.submit(0, write(1, 4000), 0);
    sim.submit(0, write(2, 4000), 1);
    // 5 ms to send, 10 ms to arrive, 1 ms to reply, 10 ms to arrive; the second waits 5 ms to be sent.
    assert_eq!(run(&mut sim), [(0, 26.0, true), (1, 31.0, true)]);
    sim.submit(100 * MS, read(1, 0, 9000), 2);
    assert_eq!(run(&mut sim), [(2, 100.0 + 1.0 + 10.0 + 10.0 + 10.0, true)]);
}

#[test]
fn nodes_have_stations_of_their_own() {
    let text = format!(
        "[node.server]\ncount = 2\n[station.cpu]\nnode = \"server\"\nservice = \"1ms\"\n{}",
        paths("{ node = \"server\", choose = \"round_robin\" }, \"cpu\"")
    );
    let mut sim = simulation(&text);
    (0..4).for_each(|t| sim.submit(0, write(u64::from(t), 0), t));
    assert_eq!(
        run(&mut sim),
        [
            (0, 1.0, true),
            (1, 1.0, true),
            (2, 2.0, true),
            (3, 2.0, true)
        ]
    );
}

#[test]
fn choices_by_hash_are_even_and_stay() {
    let text = format!(
        "[node.server]\ncount = 4\n[station.cpu]\nnode = \"server\"\nservice = \"1us\"\n{}",
        paths("{ node = \"server\", choose = \"file\" }, \"cpu\"")
    );
    let mut sim = simulation(&text);
    (0..4000).for_each(|t| sim.submit(0, write(u64::from(t), 0), t));
    let last = run(&mut sim).last().unwrap().1;
    // A thousand each, give or take four times the root of 750.
    assert!((0.95..1.115).contains(&last), "{last} ms");
    // All of one file go to one node.
    let mut sim = simulation(&text);
    (0..1000).for_each(|t| sim.submit(0, write(7, 0), t));
    assert_eq!(run(&mut sim).last().unwrap().1, 1.0);
}

#[test]
fn the_least_busy_of_several_serves() {
    let text = format!(
        "[station.disk]\ncount = 2\nchoose = \"least_busy\"\nbandwidth = \"1 MB/s\"\n{}",
        paths("\"disk\"")
    );
    let mut sim = simulation(&text);
    sim.submit(0, write(1, 10_000), 0);
    (1..4).for_each(|t| sim.submit(u64::from(t), write(2, 1000), t));
    let ended = run(&mut sim);
    // The second disk serves two small ones while the first is at the large one; then both have one.
    assert_eq!(ended.iter().map(|e| e.0).collect::<Vec<_>>()[..2], [1, 3]);
}

#[test]
fn a_cache_serves_what_it_holds_and_fetches_the_rest() {
    let text = format!(
        "[station.memory]\nservice = \"1ms\"\n[station.disk]\nbandwidth = \"1 MB/s\"\n\
         [cache.pool]\nbytes = \"8k\"\nblock = \"1k\"\nmiss = \"from_disk\"\n{}from_disk = [\"disk\"]\n",
        paths("\"memory\", \"pool\"")
    );
    let mut sim = simulation(&text);
    sim.submit(0, read(1, 0, 4096), 0);
    assert_eq!(run(&mut sim), [(0, 1.0 + 4.096, true)]);
    // Half of it is held now, and only the other half is fetched.
    sim.submit(10 * MS, read(1, 2048, 4096), 1);
    assert_eq!(run(&mut sim), [(1, 11.0 + 2.048, true)]);
    sim.submit(20 * MS, read(1, 0, 6144), 2);
    assert_eq!(run(&mut sim), [(2, 21.0, true)]);
    // Writes pass through and leave their blocks, which take the place of the oldest.
    sim.submit(30 * MS, write(2, 4096), 3);
    assert_eq!(run(&mut sim), [(3, 31.0, true)]);
    sim.submit(40 * MS, read(2, 0, 4096), 4);
    assert_eq!(run(&mut sim), [(4, 41.0, true)]);
    let (_, totals) = sim.cache_totals()[0];
    assert_eq!((totals.references, totals.hits), (22, 12));
}

#[test]
fn a_log_acknowledges_until_it_is_full() {
    let text = format!(
        "[station.disk]\nbandwidth = \"1 MB/s\"\n[station.nvram]\nservice = \"100us\"\n\
         [log.nv]\nbytes = \"10000\"\ndrain = \"to_disk\"\nin_flight = 1\n{}to_disk = [\"disk\"]\n",
        paths("\"nvram\", \"nv\"")
    );
    let mut sim = simulation(&text);
    (0..4).for_each(|t| sim.submit(0, write(u64::from(t), 4000), t));
    // Two fit. The third waits until the first is on disk, 4 ms after it was logged; the fourth for the second.
    assert_eq!(
        run(&mut sim),
        [
            (0, 0.1, true),
            (1, 0.2, true),
            (2, 4.1, true),
            (3, 8.1, true)
        ]
    );
}

#[test]
fn a_cache_writes_back_behind_its_writers() {
    let text = format!(
        "[station.disk]\nbandwidth = \"1 MB/s\"\n[station.memory]\nservice = \"1us\"\n\
         [cache.pool]\nbytes = \"100k\"\nblock = \"1000\"\nmiss = \"disk_path\"\nwrite = \"back\"\n\
         dirty_limit = \"5000\"\nflush = \"disk_path\"\nflush_in_flight = 1\n{}disk_path = [\"disk\"]\n",
        paths("\"memory\", \"pool\"")
    );
    let mut sim = simulation(&text);
    (0..2).for_each(|t| sim.submit(0, write(u64::from(t), 4000), t));
    assert_eq!(run(&mut sim), [(0, 0.001, true), (1, 4.001, true)]);
    sim.submit(20 * MS, read(1, 0, 4000), 2);
    assert_eq!(run(&mut sim), [(2, 20.001, true)]);
}

#[test]
fn a_limit_holds_back_what_is_too_much() {
    let text = format!(
        "[limit.slots]\nin_flight = 2\n[station.work_time]\nqueue = \"delay\"\nservice = \"10ms\"\n{}work = [\"work_time\"]\n",
        paths("{ limit = \"slots\", path = \"work\" }")
    );
    let mut sim = simulation(&text);
    (0..5).for_each(|t| sim.submit(0, write(1, 0), t));
    let ends: Vec<_> = run(&mut sim).into_iter().map(|e| e.1).collect();
    assert_eq!(ends, [10.0, 10.0, 20.0, 20.0, 30.0]);
}

#[test]
fn tokens_cost_a_round_trip_when_another_client_had_them() {
    let text = format!(
        "[station.disk]\nservice = \"1ms\"\n[link.lan]\nlatency = \"5ms\"\n[tokens.files]\n{}recall = [\"lan.request\", \"lan.reply\"]\n",
        paths("{ tokens = \"files\", path = \"recall\" }, \"disk\"")
    );
    let mut sim = simulation(&text);
    let from = |client| Operation {
        client,
        ..write(1, 0)
    };
    for (ticket, (client, took)) in [(1, 1.0), (1, 1.0), (2, 11.0), (1, 11.0)]
        .into_iter()
        .enumerate()
    {
        let begin = ticket as u64 * 100;
        sim.submit(begin * MS, from(client), ticket as u32);
        assert_eq!(run(&mut sim), [(ticket as u32, begin as f64 + took, true)]);
    }
}

#[test]
fn a_stripe_handles_its_pieces_at_once() {
    let text = format!(
        "[station.lun]\ncount = 4\nbandwidth = \"1 MB/s\"\n{}piece = [\"lun\"]\n",
        paths("{ stripe = \"1000\", path = \"piece\" }")
    );
    let mut sim = simulation(&text);
    sim.submit(0, operation(OperationClass::DataWrite, 1, 500, 3000), 0);
    // Pieces of 500, 1000, 1000 and 500 bytes on four stations.
    assert_eq!(run(&mut sim), [(0, 1.0, true)]);
    assert_eq!(sim.station_totals()[0].1.completed, 4);
}

#[test]
fn bad_systems_are_refused_with_their_place() {
    let good = "title = \"x\"\n[station.cpu]\nservice = \"1ms\"\n";
    for (text, expected) in [
        (
            format!("{good}{}", paths("\"cup\"")),
            "`cup` is not an element or path",
        ),
        (
            format!(
                "{good}{}a = [\"b\"]\nb = [\"a\"]\n",
                paths("\"cpu\", \"a\"")
            ),
            "leads to itself: `metadata_read` → `a` → `b` → `a`",
        ),
        (
            format!(
                "{good}[station.disk]\nservice = \"1ms\"\n{}",
                paths("\"cpu\"")
            ),
            "no path uses `disk`",
        ),
        (
            format!(
                "{good}[[event]]\nat = \"1s\"\ndown = \"cpx\"\n{}",
                paths("\"cpu\"")
            ),
            "`cpx` is not a node, station or link",
        ),
        (
            format!(
                "{good}[[event]]\nat = \"1s\"\ndown = \"cpu.1\"\n{}",
                paths("\"cpu\"")
            ),
            "the numbers of `cpu` are 0 to 0",
        ),
        (
            format!("{good}[path]\nmetadata_read = [\"cpu\"]\n"),
            "the path of `data_read` is missing",
        ),
        (
            format!(
                "{good}[node.n]\ncount = 2\n[station.disk]\nnode = \"n\"\nservice = \"1ms\"\n{}",
                paths("\"cpu\", \"disk\"")
            ),
            "none is chosen yet",
        ),
        (
            format!("{good}servers = 0\n{}", paths("\"cpu\"")),
            "the number of servers must be at least 1",
        ),
        (
            format!("{good}distribution = \"log_normal\"\n{}", paths("\"cpu\"")),
            "this distribution needs `squared_cv`",
        ),
        (
            format!("{good}stages = 3\n{}", paths("\"cpu\"")),
            "`stages` does nothing with this distribution",
        ),
        (
            format!("title = \"x\"\n[station.cpu]\n{}", paths("\"cpu\"")),
            "a station needs `service`, `bandwidth` or both",
        ),
        (
            format!(
                "title = \"x\"\n[station.cpu]\nservice = {{ value = \"1ms\", source = \"P\", free = [\"1us\", \"1s\"] }}\n{}",
                paths("\"cpu\"")
            ),
            "only an assumed figure",
        ),
    ] {
        let found = parse(&text, "x.toml").expect_err(&text);
        let found = messages(&found);
        assert!(
            found.contains(expected),
            "{found}\ninstead of: {expected}\n{text}"
        );
    }
}

/// Two nodes with two disks each; returns how many disks are ever used by 400 operations.
fn disks_used(node: &str, disk: &str) -> usize {
    let text = format!(
        "[node.server]\ncount = 2\n[station.disk]\nnode = \"server\"\ncount = 2\nchoose = \"{disk}\"\nservice = \"1ms\"\n{}",
        paths(&format!(
            "{{ node = \"server\", choose = \"{node}\" }}, \"disk\""
        ))
    );
    let mut sim = simulation(&text);
    let begin = sim.begin_window();
    for ticket in 0..400 {
        let operation = Operation {
            client: ticket % 40,
            ..write(u64::from(ticket), 0)
        };
        sim.submit(0, operation, ticket);
    }
    run(&mut sim);
    let station = &sim.figures_since(&begin).stations[0];
    let (mean, busiest) = (
        station.utilisation.unwrap(),
        station.max_utilisation.unwrap(),
    );
    // With every disk used alike, the mean is that of the busiest.
    (mean / busiest * 4.0).round() as usize
}

#[test]
fn the_station_of_a_node_does_not_follow_from_the_node() {
    for choice in ["round_robin", "client", "file", "block", "random"] {
        assert_eq!(disks_used(choice, choice), 4, "{choice}");
    }
    assert_eq!(disks_used("file", "block"), 4);
    assert_eq!(disks_used("block", "file"), 4);
}

#[test]
fn an_operation_without_any_time_takes_a_microsecond() {
    let text = "[cache.memory]\nbytes = \"1m\"\nblock = \"1000\"\nmiss = \"fetch\"\nbegins = \"full\"\n\
         [station.disk]\nservice = \"1ms\"\n";
    let text = format!("{text}{}fetch = [\"disk\"]\n", paths("\"memory\""));
    let mut sim = with_data(&text, 1000);
    sim.submit(0, read(1, 0, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 0.001, true)]);
}

#[test]
fn changes_without_data_fill_a_log_too() {
    let text = format!(
        "[log.nvram]\nbytes = \"1024\"\ndrain = \"to_disk\"\nin_flight = 1\n[station.disk]\nservice = \"1ms\"\n{}to_disk = [\"disk\"]\n",
        paths("\"nvram\"")
    );
    let mut sim = simulation(&text);
    (0..4).for_each(|t| sim.submit(0, operation(OperationClass::MetadataChange, 1, 0, 0), t));
    // Two records of 512 bytes fit.
    assert_eq!(
        run(&mut sim),
        [
            (0, 0.001, true),
            (1, 0.001, true),
            (2, 1.0, true),
            (3, 2.0, true)
        ]
    );
}

#[test]
fn a_class_may_take_the_path_of_another() {
    let text = "[station.cpu]\nservice = \"1ms\"\n[path]\nmetadata_read = [\"cpu\"]\n\
         metadata_change = [\"metadata_read\", \"cpu\"]\ndata_read = [\"cpu\"]\ndata_write = [\"metadata_change\", \"cpu\"]\n";
    let mut sim = simulation(text);
    sim.submit(0, write(1, 0), 0);
    assert_eq!(run(&mut sim), [(0, 3.0, true)]);
}

#[test]
fn systems_that_are_too_large_are_refused() {
    let good = "title = \"x\"\n[station.cpu]\nservice = \"1ms\"\n";
    // Each path takes the next one twice: 2⁶⁰ steps, and none of them an element.
    let doubling: String = (0..60)
        .map(|i| format!("p{i} = [\"p{}\", \"p{}\"]\n", i + 1, i + 1))
        .collect();
    let deep: String = (0..2000)
        .map(|i| format!("p{i} = [\"p{}\"]\n", i + 1))
        .collect();
    for (text, expected) in [
        (
            format!("{good}{}{doubling}p60 = []\n", paths("\"cpu\", \"p0\"")),
            "the paths have more than 10000 steps, written out",
        ),
        (
            format!("{good}{}{deep}p2000 = [\"cpu\"]\n", paths("\"p0\"")),
            "at most 64 paths lie within each other",
        ),
        (
            format!("{good}count = 4000000000\n{}", paths("\"cpu\"")),
            "the number of stations must be at most 1048576",
        ),
        (
            format!(
                "{good}[node.n]\ncount = 65536\n[station.disk]\nnode = \"n\"\ncount = 65536\nservice = \"1ms\"\n{}",
                paths("{ node = \"n\", choose = \"client\" }, \"cpu\", \"disk\"")
            ),
            "at most 1048576 instances of elements of one kind",
        ),
        (
            format!(
                "{good}{}a = [\"cpu\"]\n",
                paths("{ stripe = \"1\", path = \"a\" }")
            ),
            "a piece must have at least 512 bytes",
        ),
        (
            format!("{good}[node.cpu]\ncount = 1\n{}", paths("\"cpu\"")),
            "the name `cpu` is given twice",
        ),
        (
            format!(
                "{good}[log.a]\nbytes = \"1m\"\ndrain = \"from_a\"\nin_flight = 1\n[log.b]\nbytes = \"1m\"\ndrain = \"from_b\"\nin_flight = 1\n{}from_a = [\"cpu\", \"b\"]\nfrom_b = [\"a\"]\n",
                paths("\"a\"")
            ),
            "`a` is drained into itself",
        ),
        (
            format!(
                "{good}[node.n]\ncount = 2\n[station.disk]\nnode = \"n\"\nservice = \"1ms\"\n[log.a]\nbytes = \"1m\"\ndrain = \"from_a\"\nin_flight = 1\n[log.b]\nbytes = \"1m\"\ndrain = \"from_b\"\nin_flight = 1\n{}from_a = [\"b\"]\nfrom_b = [\"disk\"]\nother = [{{ node = \"n\", choose = \"client\" }}]\n",
                paths("\"cpu\", \"a\"")
            ),
            "belongs to the nodes of `n`, and none is chosen yet",
        ),
        (
            format!("{good}bandwidth = \"+5 MB/s\"\n{}", paths("\"cpu\"")),
            "`+5 MB/s` is not a rate",
        ),
    ] {
        let found = messages(&parse(&text, "x.toml").expect_err(expected));
        assert!(found.contains(expected), "{found}\ninstead of: {expected}");
    }
}

#[test]
fn what_a_cache_does_not_hold_is_never_more_than_what_is_read() {
    let text = format!(
        "[cache.memory]\nbytes = \"1m\"\nblock = \"1000\"\nmiss = \"fetch\"\n\
         [station.disk]\nbandwidth = \"1 MB/s\"\n{}fetch = [\"disk\"]\n",
        paths("\"memory\"")
    );
    let mut sim = simulation(&text);
    sim.submit(0, read(1, 0, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 1.0, true)]);
    // Half of the first block, the second one and a tenth of the third: two are not held.
    sim.submit(MS, read(1, 500, 1600), 1);
    assert_eq!(run(&mut sim), [(1, 2.6, true)]);
}
