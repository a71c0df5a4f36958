//! Operation mixes in a printed Plan and in JSON.

use super::*;

#[test]
fn a_mix_is_printed_with_everything_it_holds() {
    let plan = plan();
    plan.check().unwrap();
    insta::assert_snapshot!(plan);
}

#[test]
fn plans_with_mixes_survive_their_json_form() {
    let plan = plan();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

/// Lines of a printed Plan about the operation mix, which follow the lines about the group of workers.
fn lines(plan: &Plan) -> Vec<String> {
    let text = plan.to_string();
    let lines = text.lines().skip_while(|l| !l.starts_with("workers"));
    let program = lines.skip(2).take_while(|l| !l.is_empty());
    program.map(|l| l.trim_start().to_owned()).collect()
}

#[test]
fn a_mix_without_options_is_printed_in_few_lines() {
    let mut plan = plan();
    set_ops(&mut plan, &[MixOp::Stat, MixOp::Readdir]);
    let m = mix(&mut plan);
    m.pacing = None;
    m.flags = MixFlags::default();
    m.files.shared = true;
    m.working_set.choice = Choice::Uniform;
    m.working_set.millionths = 10_000;
    let mut expected = vec![
        "one operation after the other, unpaced",
        "stat 50 %, readdir 50 %",
        "works on 1 file of data, shared by all processes; chosen uniformly",
    ];
    assert_eq!(lines(&plan), expected);
    mix(&mut plan).delay = Duration::from_micros(1250);
    mix(&mut plan).working_set.choice = Choice::Zipf { exponent: 0.9 };
    expected[0] = "one operation after the other, 1.25ms after each";
    expected[2] = "works on 1 file of data, shared by all processes; the first preferred (zipf, \
                   exponent 0.9)";
    assert_eq!(lines(&plan), expected);
    plan.metric = None;
    assert!(!plan.to_string().contains("load:"));
}

#[test]
fn random_transfers_are_printed_with_their_spots() {
    let mut plan = plan();
    set_ops(&mut plan, &[MixOp::Rmw]);
    let m = mix(&mut plan);
    m.pacing.as_mut().unwrap().arrivals = Arrivals::Poisson;
    m.flags = MixFlags {
        align: 2,
        ..MixFlags::default()
    };
    m.working_set.choice = Choice::Geometric { percent: 100.0 };
    let spots = m.working_set.spots.as_mut().unwrap();
    (spots.multiplier, spots.geometric) = (1, false);
    assert_eq!(
        lines(&plan),
        [
            "25 operations per second each, at random (Poisson); 100 in all",
            "rmw 100 %",
            "writes: 8 KiB",
            "works on 30 files of data, each process has a part of its own; the first preferred \
             (geometric, mean a tenth)",
            "60 % of random transfers stay in a spot of 5 % of a file for 50 of them",
            "random transfers begin at multiples of 2 B",
        ]
    );
}

#[test]
fn a_long_table_is_printed_in_lines_of_90_columns() {
    let mut plan = plan();
    set_ops(&mut plan, &MixOp::ALL);
    for (i, row) in mix(&mut plan).table.iter_mut().enumerate() {
        row.percent = if i == 0 { 71.0 } else { 1.0 };
    }
    let text = plan.to_string();
    let table = text.lines().filter(|l| l.contains(" 1 %"));
    let table: Vec<&str> = table.collect();
    let names = MixOp::ALL.iter().enumerate().map(|(i, op)| {
        let percent = if i == 0 { 71 } else { 1 };
        format!("{op} {percent} %")
    });
    let names: Vec<String> = names.collect();
    let joined: Vec<&str> = table.iter().map(|l| l.trim_start()).collect();
    assert_eq!(joined.join(" "), names.join(", "));
    assert!(table.len() > 2);
    for (line, next) in table.iter().zip(&table[1..]) {
        let first = next.trim_start().split_inclusive('%').next().unwrap();
        let comma = usize::from(next.trim_start() != first);
        assert!(line.len() <= 90, "{line}");
        assert!(
            line.len() + 1 + first.len() + comma > 90,
            "{first} fits {line}"
        );
    }
}

#[test]
fn a_load_is_printed_with_its_criteria() {
    let of = |change: fn(&mut BusinessMetric)| {
        let mut plan = plan();
        change(plan.metric.as_mut().unwrap());
        let text = plan.to_string();
        let lines = text.lines().skip_while(|l| !l.starts_with("load"));
        let lines = lines.take_while(|l| !l.is_empty());
        lines.map(|l| l.trim_start().to_owned()).collect::<Vec<_>>()
    };
    let unpaced = of(|m| {
        m.rate = None;
        m.scale = 1.0;
        m.criteria.latency = None;
    });
    assert_eq!(
        unpaced,
        [
            "load: 2 databases",
            "each 100 MiB of data",
            "valid if no operation fails",
        ]
    );
    let scaled = of(|m| m.scale = 0.25);
    let expected = "scaled: not comparable; data and rates are 0.25 of that, 25 MiB each";
    assert_eq!(scaled[2], expected);
}
