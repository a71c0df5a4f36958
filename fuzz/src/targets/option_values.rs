//! Values of options: sizes, times, ages, numbers of operations, processors, percentiles, contents, tags, rates of
//! links and faults. Any text is a value, or refused with a sentence; a printed value parses as the same value.

use plimsoll_nfs::server::FaultRule;
use plimsoll_plan::option_values::{age, cpu_list, ops_limit};
use plimsoll_plan::{Content, OpsLimit, parse_duration, parse_size, show_duration, show_exactly};
use plimsoll_results::{Percentile, Percentiles, Status, Tag};
use std::hint::black_box;

/// Checks that a refusal has a text.
fn sentence<T>(read: Result<T, String>) -> Option<T> {
    read.map_err(|e| assert!(!e.is_empty())).ok()
}

/// Parses the input as a value of each kind of option; prints and parses accepted sizes, lists of processors, contents
/// and percentiles again.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(size) = sentence(parse_size(text)) {
        assert_eq!(parse_size(&size.to_string()), Ok(size));
    }
    if let Some(time) = sentence(parse_duration(text)) {
        black_box((show_duration(time), show_exactly(time)));
    }
    black_box(sentence(age(text)));
    match sentence(ops_limit(text)) {
        Some(OpsLimit::Total(n) | OpsLimit::PerWorker(n)) => assert!(n > 0),
        None => {}
    }
    if let Some(cpus) = sentence(cpu_list(text)) {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        assert_eq!(cpu_list(&list.join(",")), Ok(cpus));
    }
    if let Ok(content) = text.parse::<Content>() {
        assert_eq!(content.to_string().parse(), Ok(content));
    }
    if let Ok(percentile) = text.parse::<Percentile>() {
        assert_eq!(percentile.to_string().parse().ok(), Some(percentile));
    }
    if let Ok(percentiles) = text.parse::<Percentiles>() {
        let all = percentiles.as_slice().iter();
        let list: Vec<String> = all.map(ToString::to_string).collect();
        assert_eq!(list.join(",").parse().ok(), Some(percentiles));
    }
    if let Ok(tag) = text.parse::<Tag>() {
        assert_eq!(tag.as_str(), text);
    }
    black_box((
        text.parse::<Status>().is_ok(),
        text.parse::<FaultRule>().is_ok(),
    ));
}
