//! Names that results had before their present ones: older documents are read with these tables.
//!
//! A path names a field from the top of the document. `*` stands for any field, `**` for any number of them, and
//! lists are passed through.

use serde_json::Value;

/// A field that has another name now: its old path, and the new name.
pub(crate) type Rename = (&'static str, &'static str);

/// Fields of every document of an older version.
const ALL: [Rename; 2] = [("schema", "schema_version"), ("started", "started_at")];

/// Fields of `run.json` before version 3.
pub(crate) const RUN: &[Rename] = &[
    ("populated", "filesets"),
    ("stuck", "hung_workers"),
    ("mix.**.asked_ops_per_s", "offered_ops_per_s"),
    ("mix.**.done_ops_per_s", "achieved_ops_per_s"),
    ("mix.**.due", "scheduled"),
    ("mix.**.done", "completed"),
    ("mix.**.missed", "dropped"),
    ("mix.**.slowest_percent", "slowest_process_percent"),
    ("mix.**.start_lateness", "start_delay"),
    ("**.percentiles.enough", "enough_samples"),
    ("**.longest_gap_ms", "max_gap_ms"),
    ("**.likely_gap_ms", "expected_max_gap_ms"),
    ("**.stalls.from_s", "start_s"),
    ("**.stalls.to_s", "end_s"),
    ("**.stalls.counts", "invalidates"),
    ("client_cache.share", "hit_ratio"),
    ("failure.place", "location"),
    ("notes.place", "location"),
];

/// Fields of the Plan in a document, before version 2 of it.
pub(crate) const PLAN: &[Rename] = &[
    ("**.plan.schema", "schema_version"),
    ("**.plan.place", "work_dir"),
    ("**.plan.*.place", "location"),
    ("**.plan.options.allow_system", "allow_commands"),
    ("**.plan.options.cold", "drop_caches"),
];

/// Fields of points, in `curve.json` and `find.json` before version 3.
pub(crate) const POINT: &[Rename] = &[
    ("**.point.started", "started_at"),
    ("points.started", "started_at"),
    ("**.asked_ops_per_s", "offered_ops_per_s"),
    ("**.achieved", "achieved_ops_per_s"),
    ("**.slowest_percent", "slowest_process_percent"),
    ("**.percentiles.enough", "enough_samples"),
    ("points.latency_ms", "mean_ms"),
    ("points.service_ms", "service_mean_ms"),
    ("**.point.latency_ms", "mean_ms"),
    ("**.point.service_ms", "service_mean_ms"),
    ("time_s", "measure_s"),
    ("notes.place", "location"),
];

/// Fields of `curve.json` before version 3.
pub(crate) const CURVE: &[Rename] = &[
    ("stopped", "stop_reason"),
    ("**.peak", "highest_valid_load"),
    ("stop_reason.before_achieved", "before_achieved_ops_per_s"),
    ("stop_rules.invalid_in_a_row", "stop_after_invalid"),
    ("stop_rules.falling", "stop_past_peak"),
];

/// Fields of `find.json` before version 3.
pub(crate) const FIND: &[Rename] = &[
    ("line.**.held", "passed"),
    ("runs.held", "passed"),
    ("line.carried", "sustained"),
    ("line.not_carried", "not_sustained"),
    ("line.ended", "termination"),
    ("line", "load_line"),
    ("search.start", "start_load"),
    ("search.max", "max_load"),
    ("search.confirm", "confirm_runs"),
    ("search.most_runs", "max_runs"),
    ("search.noise", "min_margin_spread"),
];

/// Fields of `repeats.json` before version 2.
pub(crate) const REPEATS: &[Rename] = &[("asked", "requested_runs")];

/// Codes that have other words now.
const CODES: [Rename; 9] = [
    ("late_starts", "client_start_delay"),
    ("stuck", "hung_workers"),
    ("no_answer", "server_not_responding"),
    ("ran_out", "fileset_exhausted"),
    ("invalid_in_a_row", "consecutive_invalid"),
    ("rate_fell", "past_peak"),
    ("nothing_carried", "none_sustained"),
    ("limit_not_reached", "max_load_sustained"),
    ("out_of_runs", "max_runs_reached"),
];

/// Where codes are, by the present names.
const CODE_PATHS: [&str; 4] = [
    "**.reasons.code",
    "**.criteria.code",
    "stop_reason.rule",
    "load_line.termination",
];

/// Gives the fields and codes of an older document their present names, and its version the present number.
pub(crate) fn upgrade(document: &mut Value, tables: &[&[Rename]], schema_version: u32) {
    for (path, new) in ALL.iter().chain(tables.iter().copied().flatten()) {
        let path: Vec<&str> = path.split('.').collect();
        rename(document, &path, new);
    }
    for path in CODE_PATHS {
        let path: Vec<&str> = path.split('.').collect();
        visit(document, &path, &mut |value| {
            let new = CODES.iter().find(|(old, _)| value.as_str() == Some(old));
            if let Some((_, new)) = new {
                *value = (*new).into();
            }
        });
    }
    if let Some(version) = document.get_mut("schema_version") {
        *version = schema_version.into();
    }
    visit(
        document,
        &["**", "plan", "schema_version"],
        &mut |version| {
            *version = plimsoll_plan::PLAN_SCHEMA.into();
        },
    );
}

/// Gives the fields at a path another name.
fn rename(value: &mut Value, path: &[&str], new: &str) {
    let (old, parents) = path.split_last().expect("a path names a field");
    visit(value, parents, &mut |parent| {
        let parents: &mut [Value] = match parent {
            Value::Array(list) => list,
            one => std::slice::from_mut(one),
        };
        for object in parents.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(value) = object.remove(*old) {
                object.insert(new.into(), value);
            }
        }
    });
}

/// Calls a function with each value at a path.
fn visit(value: &mut Value, path: &[&str], call: &mut dyn FnMut(&mut Value)) {
    let Some((first, rest)) = path.split_first() else {
        return call(value);
    };
    match value {
        Value::Array(list) => list.iter_mut().for_each(|v| visit(v, path, call)),
        Value::Object(fields) if *first == "*" => {
            fields.values_mut().for_each(|v| visit(v, rest, call));
        }
        Value::Object(fields) if *first == "**" => {
            fields.values_mut().for_each(|v| visit(v, path, call));
            visit(value, rest, call);
        }
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(*first) {
                visit(field, rest, call);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_name_fields_at_any_depth() {
        let mut value = json!({
            "a": { "x": 1, "list": [{ "x": 2 }, { "deep": { "x": 3 } }] },
            "x": 4,
        });
        rename(&mut value, &["a", "**", "x"], "y");
        let expected = json!({
            "a": { "y": 1, "list": [{ "y": 2 }, { "deep": { "y": 3 } }] },
            "x": 4,
        });
        assert_eq!(value, expected);
        rename(&mut value, &["*", "list", "y"], "z");
        assert_eq!(value["a"]["list"][0], json!({ "z": 2 }));
    }

    #[test]
    fn codes_are_those_of_reasons_alone() {
        let mut value = json!({
            "schema": 2,
            "plan": { "schema": 1, "place": "w" },
            "workload": "stuck",
            "reasons": [{ "code": "stuck", "text": "stuck" }],
        });
        upgrade(&mut value, &[RUN, PLAN], 3);
        let expected = json!({
            "schema_version": 3,
            "plan": { "schema_version": plimsoll_plan::PLAN_SCHEMA, "work_dir": "w" },
            "workload": "stuck",
            "reasons": [{ "code": "hung_workers", "text": "stuck" }],
        });
        assert_eq!(value, expected);
    }
}
