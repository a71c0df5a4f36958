//! Times of operations at each kind of element, compared with times computed by hand.

mod common;

use common::{MS, messages, operation, paths, read, run, simulation, with_data, write};
use plimsoll_sim::{Operation, OperationClass, parse};

#[test]
fn a_link_takes_header_and_data_one_message_after_the_other() {
    // At 1 MB/s a byte takes 1 µs. The request of a write carries data, and the reply of a read.
    let link = "[link.wan]\nlatency = \"10ms\"\nbandwidth = \"1 MB/s\"\nheader = \"1000\"\n";
    let mut sim = simulation(&format!(
        "{link}{}",
        paths("\"wan.request\", \"wan.reply\"")
    ));
    sim.submit(0, write(1, 4000), 0);
    sim.submit(0, write(2, 4000), 1);
    // A request takes 5 ms of transmission and 10 ms of latency, and a reply takes 1 ms and 10 ms; the second request
    // waits for 5 ms.
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
    // Each of four stations serves about a thousand operations of 1 µs; the tolerance of the largest number is four
    // standard deviations of √750.
    assert!((0.95..1.115).contains(&last), "{last} ms");
    // All operations on one file go to a single node, whose disk serves the operations one after another.
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
    // The second disk serves two small operations while the first disk serves the large operation; then each disk has
    // an operation.
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
    // The cache holds half of the read range, so only the other half is fetched from disk.
    sim.submit(10 * MS, read(1, 2048, 4096), 1);
    assert_eq!(run(&mut sim), [(1, 11.0 + 2.048, true)]);
    sim.submit(20 * MS, read(1, 0, 6144), 2);
    assert_eq!(run(&mut sim), [(2, 21.0, true)]);
    // Writes pass through the cache, which keeps the written blocks in place of the oldest blocks.
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
    // Two records of 4000 bytes fit the log of 10 000 bytes. The third operation waits until the first record is on
    // disk, 4 ms after the append, and the fourth operation waits for the second record.
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

const CPU: &str = "title = \"x\"\n[station.cpu]\nservice = \"1ms\"\n";

#[track_caller]
fn assert_refused(text: &str, expected: &str) {
    let found = messages(&parse(text, "x.toml").expect_err(expected));
    assert!(found.contains(expected), "{found}\ninstead of: {expected}");
}

/// Each row has keys of the station `cpu` or further tables, and the expected error; the station `cpu` is the only step
/// of all paths.
#[test]
fn bad_tables_are_refused() {
    let rows = r#"
        servers = 0 => the number of servers must be at least 1
        count = 4000000000 => the number of stations must be at most 1048576
        stages = 3 => `stages` does nothing with this distribution
        distribution = "log_normal" => this distribution needs `squared_cv`
        bandwidth = "+5 MB/s" => `+5 MB/s` is not a rate
        bandwidth = { value = "1 MB/s", source = "P", free = ["1 MB/s", "2 MB/s"] } => only an assumed
        [station.disk] => a station needs `service`, `bandwidth` or both
        [station.disk]; service = "1ms" => no path uses `disk`
        [node.cpu]; count = 1 => the name `cpu` is given twice
        [[event]]; at = "1s"; down = "cpx" => `cpx` is not a node, station or link
        [[event]]; at = "1s"; down = "cpu.1" => the numbers of `cpu` are 0 to 0
    "#;
    for (tables, expected) in rows.lines().filter_map(|l| l.trim().split_once(" => ")) {
        let tables = tables.replace("; ", "\n");
        let text = format!("{CPU}{tables}\n{}", paths("\"cpu\""));
        assert_refused(&text, expected);
    }
    let missing = format!("{CPU}[path]\nmetadata_read = [\"cpu\"]\n");
    assert_refused(&missing, "the path of `data_read` is missing");
}

/// Each row has tables after the station `cpu`, the steps of the four paths, further paths, and the expected error.
#[test]
fn bad_paths_are_refused() {
    let node = "[node.n]\ncount = 2\n[station.disk]\nnode = \"n\"\nservice = \"1ms\"\n";
    let many = node.replace("count = 2", "count = 65536") + "count = 65536\n";
    let log = |name: &str| {
        format!("[log.{name}]\nbytes = \"1m\"\ndrain = \"from_{name}\"\nin_flight = 1\n")
    };
    let logs = log("a") + &log("b");
    let logs_at_node = format!("{node}{logs}");
    // Each path has the next path as a step twice: 2⁶⁰ steps, and none of the steps is an element.
    let doubling = (0..60).map(|i| format!("p{i} = [\"p{0}\", \"p{0}\"]\n", i + 1));
    let doubling = doubling.collect::<String>() + "p60 = []\n";
    let deep = (0..2000).map(|i| format!("p{i} = [\"p{}\"]\n", i + 1));
    let deep = deep.collect::<String>() + "p2000 = [\"cpu\"]\n";
    for (tables, steps, more, expected) in [
        ("", "\"cup\"", "", "`cup` is not an element or path"),
        (
            "",
            "\"cpu\", \"a\"",
            "a = [\"b\"]\nb = [\"a\"]\n",
            "leads to itself: `metadata_read` → `a` → `b` → `a`",
        ),
        (node, "\"cpu\", \"disk\"", "", "none is chosen yet"),
        (
            "",
            "\"cpu\", \"p0\"",
            &doubling,
            "the paths have more than 10000 steps, written out",
        ),
        (
            "",
            "\"p0\"",
            &deep,
            "at most 64 paths lie within each other",
        ),
        (
            &many,
            "{ node = \"n\", choose = \"client\" }, \"cpu\", \"disk\"",
            "",
            "at most 1048576 instances of elements of one kind",
        ),
        (
            "",
            "{ stripe = \"1\", path = \"a\" }",
            "a = [\"cpu\"]\n",
            "a piece must have at least 512 bytes",
        ),
        (
            &logs,
            "\"a\"",
            "from_a = [\"cpu\", \"b\"]\nfrom_b = [\"a\"]\n",
            "`a` is drained into itself",
        ),
        (
            &logs_at_node,
            "\"cpu\", \"a\"",
            "from_a = [\"b\"]\nfrom_b = [\"disk\"]\nother = [{ node = \"n\", choose = \"client\" }]\n",
            "belongs to the nodes of `n`, and none is chosen yet",
        ),
    ] {
        let text = format!("{CPU}{tables}{}{more}", paths(steps));
        assert_refused(&text, expected);
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
    // If all disks are used equally, the mean equals the utilisation of the busiest disk.
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
fn what_a_cache_does_not_hold_is_never_more_than_what_is_read() {
    let text = format!(
        "[cache.memory]\nbytes = \"1m\"\nblock = \"1000\"\nmiss = \"fetch\"\n\
         [station.disk]\nbandwidth = \"1 MB/s\"\n{}fetch = [\"disk\"]\n",
        paths("\"memory\"")
    );
    let mut sim = simulation(&text);
    sim.submit(0, read(1, 0, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 1.0, true)]);
    // The read covers half of the first block, the second block and a tenth of the third block; the cache lacks two of
    // the blocks.
    sim.submit(MS, read(1, 500, 1600), 1);
    assert_eq!(run(&mut sim), [(1, 2.6, true)]);
}
