//! Nodes and stations that go down under operations, against times computed by hand.

mod common;

use common::{MS, operation, paths, run, run_until, simulation, write};
use plimsoll_sim::{OperationClass, Simulation};
use proptest::prelude::*;

fn replicas(wait: &str, when_down: &str, events: &str) -> String {
    format!(
        "[node.server]\ncount = 3\nwhen_down = \"{when_down}\"\n\
         [station.disk]\nnode = \"server\"\nbandwidth = \"1 MB/s\"\n\
         {events}\n{}store = [\"disk\"]\n",
        paths(&format!(
            "{{ replicate = \"server\", path = \"store\", wait = \"{wait}\" }}"
        ))
    )
}

#[test]
fn replicas_are_waited_for_as_they_say() {
    // The disks take 2, 3 and 4 ms.
    for (wait, expected) in [("all", 4.0), ("quorum", 3.0), ("primary", 2.0)] {
        let slow = "[[event]]\nat = \"0s\"\nslow = \"server.0\"\nfactor = 2\n\
                    [[event]]\nat = \"0s\"\nslow = \"server.1\"\nfactor = 3\n\
                    [[event]]\nat = \"0s\"\nslow = \"server.2\"\nfactor = 4\n";
        let mut sim = simulation(&replicas(wait, "wait", slow));
        sim.submit(0, write(1, 1000), 0);
        let ended = run(&mut sim);
        assert_eq!(ended, [(0, expected, true)], "{wait}");
        assert_eq!(sim.station_totals()[0].1.completed, 3, "every copy is made");
    }
}

/// An event of a system file at a time in milliseconds.
fn event(at: u32, what: &str) -> String {
    format!("[[event]]\nat = \"{at}ms\"\n{what}\n")
}

/// Two servers that every write goes to, with a disk of 1 MB/s each and a rebuild in pieces of 1000 bytes.
fn mirrored(when_down: &str, retry_after: &str, events: &[String]) -> Simulation {
    simulation(&format!(
        "[node.server]\ncount = 2\nwhen_down = \"{when_down}\"\nretry_after = \"{retry_after}\"\n\
         rebuild = {{ path = \"resync\", chunk = \"1000\", in_flight = 1 }}\n\
         [station.disk]\nnode = \"server\"\nbandwidth = \"1 MB/s\"\n\
         {}{}store = [\"disk\"]\nresync = [\"disk\"]\n",
        events.concat(),
        paths("{ replicate = \"server\", path = \"store\", wait = \"all\" }")
    ))
}

#[test]
fn what_is_in_flight_at_a_node_that_goes_down_fails_waits_or_goes_elsewhere() {
    let system = |policy: &str| {
        format!(
            "[node.server]\ncount = 2\nwhen_down = \"{policy}\"\nretry_after = \"5ms\"\n\
             [station.disk]\nnode = \"server\"\nservice = \"10ms\"\n\
             [[event]]\nat = \"4ms\"\ndown = \"server.1\"\n[[event]]\nat = \"50ms\"\nup = \"server.1\"\n{}",
            paths("{ node = \"server\", choose = \"round_robin\" }, \"disk\"")
        )
    };
    for (policy, expected) in [
        ("fail", [(0, 4.0, false), (1, 10.0, true)]),
        ("wait", [(1, 10.0, true), (0, 60.0, true)]),
        // The operation that was in flight at the failed node is sent to the other node 5 ms later; the other node is
        // busy until 10 ms.
        ("retry", [(1, 10.0, true), (0, 20.0, true)]),
    ] {
        let mut sim = simulation(&system(policy));
        (0..2).for_each(|t| sim.submit(0, write(u64::from(t), 0), t));
        assert_eq!(run(&mut sim), expected, "{policy}");
    }
}

#[test]
fn a_node_that_missed_writes_is_brought_up_to_date() {
    let events = [
        event(0, "down = \"server.1\""),
        event(100, "up = \"server.1\""),
    ];
    let mut sim = mirrored("wait", "1s", &events);
    (0..3).for_each(|t| sim.submit(MS, write(u64::from(t), 2500), t));
    assert_eq!(
        run(&mut sim),
        [(0, 3.5, true), (1, 6.0, true), (2, 8.5, true)]
    );
    // Server 0 executes 3 writes, and the rebuild of server 1 writes the 7500 missed bytes in 8 pieces.
    let (_, disk) = sim.station_totals()[0];
    assert_eq!(disk.completed, 3 + 8);
    assert_eq!(disk.busy_ns, (7500 + 7500) * 1000);
}

/// Two servers with a disk each, and more tables; every path is `path`.
fn servers(when_down: &str, tables: &str, path: &str, events: &[String]) -> Simulation {
    simulation(&format!(
        "[node.server]\ncount = 2\nwhen_down = \"{when_down}\"\nretry_after = \"5ms\"\n\
         [station.disk]\nnode = \"server\"\nservice = \"10ms\"\n{tables}\n{}{}",
        events.concat(),
        paths(path)
    ))
}

#[test]
fn a_node_that_goes_down_before_an_operation_arrives_is_noticed_on_arrival() {
    let events = [
        event(5, "down = \"server.1\""),
        event(50, "up = \"server.1\""),
    ];
    for (policy, expected) in [
        // An operation takes 10 ms on the way to the disk, and 10 ms at the disk.
        ("fail", (10.0, false)),
        ("wait", (60.0, true)),
        // The operation notices the failure after 5 ms, and then takes the way to the disk of the other server again.
        ("retry", (35.0, true)),
    ] {
        let mut sim = servers(
            policy,
            "[station.way]\nqueue = \"delay\"\nservice = \"10ms\"",
            "{ node = \"server\", choose = \"round_robin\" }, \"way\", \"disk\"",
            &events,
        );
        sim.submit(0, write(1, 0), 0);
        assert_eq!(run(&mut sim), [(0, expected.0, expected.1)], "{policy}");
    }
}

#[test]
fn the_policy_of_a_station_comes_before_that_of_its_node() {
    let mut sim = simulation(&format!(
        "[node.server]\ncount = 1\n[station.disk]\nnode = \"server\"\nservice = \"10ms\"\n\
         when_down = \"fail\"\n{}{}",
        event(4, "down = \"server.0\""),
        paths("{ node = \"server\", choose = \"client\" }, \"disk\"")
    ));
    sim.submit(0, write(1, 0), 0);
    assert_eq!(run(&mut sim), [(0, 4.0, false)]);
}

#[test]
fn an_operation_that_goes_elsewhere_leaves_the_limits_of_its_first_node() {
    let mut sim = simulation(&format!(
        "[node.server]\ncount = 2\nwhen_down = \"retry\"\nretry_after = \"5ms\"\n\
         [station.disk]\nnode = \"server\"\nservice = \"10ms\"\n\
         [limit.slots]\nnode = \"server\"\nin_flight = 1\n{}{}{}work = [\"disk\"]\n",
        event(4, "down = \"server.1\""),
        event(12, "up = \"server.1\""),
        paths(
            "{ node = \"server\", choose = \"round_robin\" }, { limit = \"slots\", path = \"work\" }"
        )
    ));
    sim.submit(0, write(1, 0), 0);
    // At 9 ms an operation leaves the limit of server 1 and moves to server 0.
    let mut completed = Vec::new();
    sim.advance(20 * MS, &mut completed);
    assert_eq!(completed.len(), 1);
    // Both servers have room for one operation again.
    (1..3).for_each(|t| sim.submit(20 * MS, write(1, 0), t));
    assert_eq!(run(&mut sim), [(1, 30.0, true), (2, 30.0, true)]);
}

#[test]
fn the_least_busy_node_is_one_that_is_up() {
    let mut sim = servers(
        "wait",
        "",
        "{ node = \"server\", choose = \"least_busy\" }, \"disk\"",
        &[event(1, "down = \"server.0\"")],
    );
    sim.submit(2 * MS, write(1, 0), 0);
    sim.submit(2 * MS, write(1, 0), 1);
    assert_eq!(run(&mut sim), [(0, 12.0, true), (1, 22.0, true)]);
}

#[test]
fn the_primary_copy_acknowledges_even_if_it_is_the_slowest() {
    let slow = "[[event]]\nat = \"0s\"\nslow = \"server.0\"\nfactor = 10\n";
    let mut sim = simulation(&replicas("primary", "wait", slow));
    sim.submit(0, write(1, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 10.0, true)]);
    // If the primary copy fails, another copy acknowledges, which was complete at 1 ms.
    let fails = format!("{slow}{}", event(4, "down = \"server.0\""));
    let mut sim = simulation(&replicas("primary", "fail", &fails));
    sim.submit(0, write(1, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 4.0, true)]);
}

#[test]
fn a_quorum_is_more_than_half_of_all_copies() {
    let two_down = [
        event(0, "down = \"server.0\""),
        event(0, "down = \"server.1\""),
    ]
    .concat();
    let up = event(20, "up = \"server.1\"");
    for (policy, expected) in [
        // An operation that takes no time ends after a microsecond.
        ("fail", (1.001, false)),
        ("wait", (21.0, true)),
        ("retry", (21.0, true)),
    ] {
        let mut sim = simulation(&replicas("quorum", policy, &format!("{two_down}{up}")));
        sim.submit(MS, write(1, 1000), 0);
        assert_eq!(run(&mut sim), [(0, expected.0, expected.1)], "{policy}");
    }
}

#[test]
fn a_copy_whose_node_goes_down_is_missed_and_brought_up_to_date() {
    let events = [
        event(1, "down = \"server.1\""),
        event(100, "up = \"server.1\""),
    ];
    let mut sim = mirrored("retry", "5ms", &events);
    sim.submit(0, write(1, 2500), 0);
    // The copy on server 0 takes 2.5 ms; the loss of the other copy is known 5 ms after server 1 went down.
    assert_eq!(run(&mut sim), [(0, 6.0, true)]);
    let (_, disk) = sim.station_totals()[0];
    assert_eq!(
        disk.completed,
        1 + 3,
        "the copy, and three pieces of what was missed"
    );
    // Server 1 worked for 1 ms before it went down.
    assert_eq!(disk.busy_ns, (2500 + 1000 + 2500) * 1000);
}

#[test]
fn a_write_that_finds_every_node_down_waits_for_the_first_and_is_missed_by_the_others() {
    let events = [
        event(0, "down = \"server\""),
        event(10, "up = \"server.1\""),
        event(20, "up = \"server.0\""),
    ];
    let mut sim = mirrored("wait", "1s", &events);
    sim.submit(MS, write(1, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 11.0, true)]);
    let (_, disk) = sim.station_totals()[0];
    assert_eq!(
        disk.completed, 2,
        "one copy, and one piece for the other server"
    );
}

#[test]
fn an_operation_fails_with_any_of_its_pieces() {
    let mut sim = simulation(&format!(
        "[station.lun]\ncount = 4\nbandwidth = \"1 MB/s\"\nwhen_down = \"fail\"\n{}{}piece = [\"lun\"]\n",
        event(0, "down = \"lun.2\""),
        paths("{ stripe = \"1000\", path = \"piece\" }")
    ));
    sim.submit(MS, operation(OperationClass::DataWrite, 1, 0, 4000), 0);
    assert_eq!(run(&mut sim), [(0, 1.001, false)]);
}

#[test]
fn pieces_on_a_node_that_goes_down_go_elsewhere_together() {
    let mut sim = simulation(&format!(
        "[node.server]\ncount = 2\nwhen_down = \"retry\"\nretry_after = \"5ms\"\n\
         [station.disk]\nnode = \"server\"\nbandwidth = \"1 MB/s\"\n{}{}piece = [\"disk\"]\n",
        event(1, "down = \"server.1\""),
        paths(
            "{ node = \"server\", choose = \"round_robin\" }, { stripe = \"1000\", path = \"piece\" }"
        )
    ));
    sim.submit(0, operation(OperationClass::DataWrite, 1, 0, 3000), 0);
    // Server 0 executes three pieces one after another, from 6 ms on.
    assert_eq!(run(&mut sim), [(0, 9.0, true)]);
}

#[test]
fn an_operation_that_left_the_limit_around_a_choice_passes_it_again() {
    // The node is chosen within the limit, and goes down when the limit has been left.
    let mut sim = simulation(&format!(
        "[node.server]\ncount = 2\nwhen_down = \"retry\"\nretry_after = \"5ms\"\n\
         [station.disk]\nnode = \"server\"\nservice = \"10ms\"\n\
         [limit.slots]\nin_flight = 1\n{}{}inner = [{{ node = \"server\", choose = \"round_robin\" }}, \"disk\"]\n",
        event(14, "down = \"server.1\""),
        paths("{ limit = \"slots\", path = \"inner\" }, \"disk\"")
    ));
    sim.submit(0, write(1, 0), 0);
    // The operation spends 10 ms at server 1 within the limit, 4 ms at server 1 after the limit, 5 ms until the failure
    // is noticed, and then makes both visits at server 0.
    assert_eq!(run(&mut sim), [(0, 39.0, true)]);
    let now = sim.now();
    sim.submit(now, write(1, 0), 1);
    assert_eq!(run(&mut sim), [(1, 59.0, true)]);
}

#[test]
fn an_operation_at_one_of_several_stations_that_are_down_goes_to_the_first_that_is_up() {
    let mut sim = simulation(&format!(
        "[station.lun]\ncount = 2\nservice = \"10ms\"\nwhen_down = \"retry\"\n{}{}{}",
        event(0, "down = \"lun\""),
        event(20, "up = \"lun.1\""),
        paths("\"lun\"")
    ));
    (0..2).for_each(|t| sim.submit(MS, write(1, 0), t));
    assert_eq!(run(&mut sim), [(0, 30.0, true), (1, 40.0, true)]);
}

#[test]
fn a_group_comes_up_at_one_instant() {
    let text = replicas(
        "all",
        "wait",
        &[event(0, "down = \"server\""), event(10, "up = \"server\"")].concat(),
    );
    let mut sim = simulation(&text);
    sim.submit(MS, write(1, 1000), 0);
    assert_eq!(run(&mut sim), [(0, 11.0, true)]);
    assert_eq!(
        sim.station_totals()[0].1.completed,
        3,
        "every node has its copy"
    );
}

#[test]
fn what_is_missed_by_a_node_that_is_up_again_is_brought_up_to_date_at_once() {
    let events = [
        event(1, "down = \"server.1\""),
        event(10, "up = \"server.1\""),
    ];
    let mut sim = mirrored("retry", "50ms", &events);
    sim.submit(0, write(1, 2500), 0);
    // The operation notices the loss of the copy at 51 ms, when the server of the copy is up again.
    assert_eq!(run(&mut sim), [(0, 51.0, true)]);
    assert_eq!(sim.station_totals()[0].1.completed, 1 + 3);
    // The rebuild of a node that was down does not repeat reads.
    sim.submit(100 * MS, operation(OperationClass::DataRead, 1, 0, 2500), 1);
    run(&mut sim);
    assert_eq!(sim.station_totals()[0].1.completed, 1 + 3 + 2);
}

#[test]
fn operations_that_wait_at_a_node_for_a_limit_or_a_full_log_go_elsewhere_with_it() {
    // The limit of each server admits one operation of 10 ms at a time, and other operations wait.
    let limited = "[limit.slots]\nnode = \"server\"\nin_flight = 1\n";
    // The log of each server holds the bytes of a single operation.
    let logged =
        "[log.nvram]\nnode = \"server\"\nbytes = \"1000\"\ndrain = \"to_disk\"\nin_flight = 1\n";
    for (tables, step, extra) in [
        (
            limited,
            "{ limit = \"slots\", path = \"to_disk\" }",
            "to_disk = [\"disk\"]\n",
        ),
        (logged, "\"nvram\"", "to_disk = [\"disk\"]\n"),
    ] {
        let mut sim = simulation(&format!(
            "[node.server]\ncount = 2\nwhen_down = \"fail\"\n\
             [station.disk]\nnode = \"server\"\nservice = \"10ms\"\n{tables}{}{}{}{extra}",
            event(4, "down = \"server.1\""),
            event(90, "up = \"server.1\""),
            paths(&format!(
                "{{ node = \"server\", choose = \"client\" }}, {step}"
            ))
        ));
        for ticket in 0..3 {
            let operation = plimsoll_sim::Operation {
                client: 1,
                ..write(1, 1000)
            };
            sim.submit(MS, operation, ticket);
        }
        let ended = run(&mut sim);
        let failed = ended.iter().filter(|(_, at, ok)| *at == 4.0 && !ok).count();
        // With the log, the first operation was acknowledged before the failure.
        assert_eq!(
            failed,
            if tables == limited { 3 } else { 2 },
            "{tables}: {ended:?}"
        );
    }
}

/// A cluster behind a gateway, whose paths contain every kind of element that can be interrupted.
fn cluster(when_down: [&str; 3], wait: &str, events: &str) -> Simulation {
    let [gateway, server, disk] = when_down;
    simulation(&format!(
        "[node.gateway]\ncount = 2\nwhen_down = \"{gateway}\"\nretry_after = \"3ms\"\n\
         [node.server]\ncount = 3\nwhen_down = \"{server}\"\nretry_after = \"2ms\"\n\
         rebuild = {{ path = \"resync\", chunk = \"700\", in_flight = 2 }}\n\
         [link.lan]\nnode = \"gateway\"\nlatency = \"100us\"\nbandwidth = \"100 MB/s\"\n\
         [limit.slots]\nnode = \"gateway\"\nin_flight = 2\n\
         [limit.server_slots]\nnode = \"server\"\nin_flight = 3\n\
         [station.cpu]\nnode = \"gateway\"\nservice = \"100us\"\nqueue = \"processor_sharing\"\n\
         [station.disk]\nnode = \"server\"\ncount = 2\nchoose = \"least_busy\"\n\
         bandwidth = \"1 MB/s\"\nwhen_down = \"{disk}\"\n\
         [cache.memory]\nnode = \"gateway\"\nbytes = \"16k\"\nblock = \"1k\"\nvolatile = true\n\
         write = \"through\"\nmiss = \"fetch\"\n\
         [log.nvram]\nnode = \"gateway\"\nbytes = \"8k\"\ndrain = \"flush\"\nin_flight = 2\n\
         {events}\n[path]\n\
         data_read = [\"arrive\", {{ limit = \"slots\", path = \"read\" }}, \"lan.reply\"]\n\
         read = [\"cpu\", \"memory\"]\n\
         fetch = [{{ stripe = \"1k\", path = \"fetch_block\" }}]\n\
         fetch_block = [{{ node = \"server\", choose = \"block\" }}, {{ limit = \"server_slots\", path = \"disk_io\" }}, \"lan.request\"]\n\
         data_write = [\"arrive\", {{ limit = \"slots\", path = \"write\" }}, \"lan.reply\"]\n\
         write = [\"memory\", {{ stripe = \"1k\", path = \"write_block\" }}, \"cpu\"]\n\
         write_block = [{{ replicate = \"server\", path = \"store\", wait = \"{wait}\" }}]\n\
         store = [\"lan.request\", {{ limit = \"server_slots\", path = \"disk_io\" }}]\n\
         metadata_read = [\"arrive\", \"cpu\"]\n\
         metadata_change = [\"arrive\", \"nvram\", \"lan.reply\"]\n\
         arrive = [{{ node = \"gateway\", choose = \"client\" }}, \"lan.request\"]\n\
         flush = [{{ replicate = \"server\", path = \"store\", wait = \"all\" }}]\n\
         disk_io = [\"disk\"]\nresync = [\"disk\"]\n"
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any failures and operations: once all nodes are up again, every operation has ended once, every limit is
    /// free, and no operation has failed unless the system allows failures.
    #[test]
    fn everything_ends_when_all_is_up_again(
        policies in prop::array::uniform3(prop::sample::select(vec!["fail", "wait", "retry"])),
        wait in prop::sample::select(vec!["all", "quorum", "primary"]),
        operations in prop::collection::vec((0..40_000u64, 0..4u8, 0..6u64, 0..8000u64, 0..6000u64), 1..40),
        changes in prop::collection::vec(
            (0..60_000u32, prop::sample::select(vec![
                "gateway.0", "gateway.1", "server.0", "server.1", "server.2", "server", "disk.0", "disk.3", "disk", "lan",
            ]), any::<bool>()),
            0..12,
        ),
    ) {
        let mut events: String = changes
            .iter()
            .map(|(at, what, up)| {
                format!("[[event]]\nat = \"{at}us\"\n{} = \"{what}\"\n", if *up { "up" } else { "down" })
            })
            .collect();
        for what in ["gateway", "server", "disk", "lan"] {
            events += &format!("[[event]]\nat = \"70ms\"\nup = \"{what}\"\n");
        }
        let mut sim = cluster(policies, wait, &events);
        let begin = sim.snapshot();
        let mut operations = operations;
        operations.sort_unstable();
        let mut ended = vec![];
        for (ticket, (at, class, file, offset, bytes)) in operations.iter().enumerate() {
            let class = [
                OperationClass::DataRead,
                OperationClass::DataWrite,
                OperationClass::MetadataRead,
                OperationClass::MetadataChange,
            ][usize::from(*class)];
            let operation = plimsoll_sim::Operation {
                row: Some(ticket as u32),
                ..operation(class, *file, *offset, *bytes)
            };
            ended.extend(run_until(&mut sim, at * 1000));
            sim.submit(at * 1000, operation, ticket as u32);
        }
        // `run` asserts Little's law, and that no operation is in flight at the end.
        ended.extend(run(&mut sim));
        ended.sort_unstable_by_key(|(ticket, ..)| *ticket);
        let tickets: Vec<_> = ended.iter().map(|(ticket, ..)| *ticket as usize).collect();
        prop_assert_eq!(tickets, (0..operations.len()).collect::<Vec<_>>());
        if !policies.contains(&"fail") {
            prop_assert!(ended.iter().all(|(_, _, succeeded)| *succeeded));
        }
        // The times of an operation at all elements add up to the latency of the operation.
        for row in sim.figures_since(&begin).rows {
            let (_, at, _) = ended[row.row as usize];
            let latency = at - operations[row.row as usize].0 as f64 / 1000.0;
            let spent: u128 = row.elements.iter().map(|e| e.time_ns).sum();
            let took_time = latency > 0.0015;
            prop_assert!(!took_time || (spent as f64 / 1e6 - latency).abs() < 1e-6, "{row:?}: {latency} ms");
        }
        // Later operations find every limit free, because no operation waits for a lost operation.
        let now = sim.now();
        for (ticket, client) in [(1000, 0), (1001, 1)] {
            let next = plimsoll_sim::Operation { client, ..operation(OperationClass::DataRead, 99, 0, 1000) };
            sim.submit(now, next, ticket);
        }
        prop_assert_eq!(run(&mut sim).len(), 2);
    }
}
