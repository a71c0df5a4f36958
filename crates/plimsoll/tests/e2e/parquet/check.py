"""Compares tables with the results that they were made of, read by other means: the csv module, the reader of
histograms that HdrHistogram's own project publishes for Python, and DuckDB.

usage: check.py TABLES RESULTS PROGRAM
"""

import csv
import datetime
import io
import json
import pathlib
import subprocess
import sys

import duckdb
from hdrh.histogram import HdrHistogram

tables, results, program = map(pathlib.Path, sys.argv[1:])


def rows(query):
    """The rows of a query, as dictionaries."""
    found = duckdb.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def table(name, run):
    """The rows of a run, in the order of the file."""
    path = tables / f"{name}.parquet"
    return rows(f"SELECT * FROM read_parquet('{path}') WHERE run_path = '{run}'")


def report(run, form):
    """What the program reports on a run."""
    command = [program, "report", "--format", form, results / run]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def same(expected, found, what):
    """Compares texts and numbers; an empty text stands for null."""
    if expected == "":
        assert found is None, (what, expected, found)
    elif isinstance(found, str):
        assert expected == found, (what, expected, found)
    else:
        assert float(expected) == found, (what, expected, found)


def check_run(run):
    """Checks the rows of the run, as far as they are the same for all of its rows."""
    document = json.loads(report(run, "json"))
    ids = set()
    for name in ("operations", "intervals", "histograms"):
        found = table(name, run)
        for row in found:
            ids.add(row["run_id"])
            for column, value in (
                ("workload", document["workload"]),
                ("seed", document["seed"]),
                ("verdict", document["validity"]["verdict"]),
                ("clock", document["clock"]),
                ("host", document["environment"]["host"]),
                ("target", document["target"]["url"]),
            ):
                assert row[column] == value, (name, column, row[column], value)
            began = row["started_at"].strftime("%Y-%m-%dT%H:%M:%S")
            assert document["started_at"].startswith(began), (row["started_at"], document["started_at"])
    assert len(ids) == 1, ids
    return document, ids.pop()


def check_operations(run, document):
    """Checks the figures of the run against its report as csv."""
    found = table("operations", run)
    whole = [r for r in found if r["part"] == "run"]
    operations = [r for r in whole if r["level"] == "operation"]
    expected = list(csv.DictReader(io.StringIO(report(run, "csv"))))
    assert len(operations) == len(expected) == len(document["operations"])
    shared = set(expected[0]) & set(found[0]) - {"results", "started_at"}
    assert len(shared) >= 25, shared
    for row, line in zip(operations, expected, strict=True):
        for column in shared:
            same(line[column], row[column], (run, row["operation"], column))
    (summary,) = (r for r in whole if r["level"] == "summary")
    for column, field in (("ops", "ops"), ("ops_per_s", "ops_per_s"), ("bytes", "bytes"), ("errors", "errors")):
        assert summary[column] == document["summary"][field], column
    counted = sum(r["ops"] for r in operations if r["class"] in ("io", "aio"))
    assert counted == summary["ops"], (counted, summary["ops"])
    assert sum(r["level"] == "procedure" for r in whole) == len(document["procedures"])
    delays = [r for r in whole if r["level"] == "completion_delay"]
    delay = document.get("completion_delay")
    assert len(delays) == (delay is not None), delays
    if delay is not None:
        found_delay = (delays[0]["operation"], delays[0]["ops"], delays[0]["latency_p99_ms"])
        assert found_delay == (delay["name"], delay["ops"], delay["p99_ms"]), found_delay
    kinds = {(r["kind"], r["level"]) for name in ("intervals", "histograms") for r in table(name, run)}
    for kind, level in kinds:
        beside = {"rpc": "procedure", "completion_delay": "completion_delay"}
        assert level == beside.get(kind, "operation"), (kind, level)
    windows = {w["number"] for w in document["earlier_windows"]}
    earlier = [r for r in found if r["part"] == "earlier_window"]
    assert {r["window_number"] for r in earlier} == windows
    assert sum(r["level"] == "summary" for r in earlier) == len(windows)
    stages = {(r["stage"], r["iteration"]) for r in found if r["part"] == "stage"}
    assert stages == {(s["name"], s["iteration"]) for s in document["stages"]}
    for stage in document["stages"]:
        of_stage = [
            r for r in found if r["part"] == "rank" and r["window_number"] == stage["window"]["number"]
        ]
        for rank in stage["ranks"]:
            ops = sum(row["ops"] for row in rank["rows"])
            assert sum(r["ops"] for r in of_stage if r["rank"] == rank["rank"]) == ops, (stage["name"], rank)
    return operations


def opened(document):
    """When each window opened, in seconds of the run's clock, and what it is a part of; by its number."""
    found = {w["number"]: (w["start_s"], "earlier_window") for w in document["earlier_windows"]}
    if document["stages"]:
        for stage in document["stages"]:
            found[stage["window"]["number"]] = (stage["window"]["start_s"], "stage")
    else:
        found[document["window_number"]] = (document["window_start_s"], "run")
    return found


def check_intervals(run, document):
    """Checks the intervals against the file of the run."""
    began = datetime.datetime.fromisoformat(document.get("clock_started_at") or document["started_at"])
    windows = opened(document)
    with open(results / run / "intervals.csv", newline="", encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    found = table("intervals", run)
    assert len(found) == len(expected)
    columns = {
        "window": "window_number",
        "interval": "interval_number",
        "mean_ms": "latency_mean_ms",
        "p50_ms": "latency_p50_ms",
        "p99_ms": "latency_p99_ms",
        "max_ms": "latency_max_ms",
    }
    for row, line in zip(found, expected, strict=True):
        for name, value in line.items():
            column = columns.get(name, name)
            if line["ops"] == "0" and column.endswith("_ms"):
                value = ""
            same(value, row[column], (run, column))
        start_s, part = windows.get(row["window_number"], (None, "dropped_window"))
        assert row["part"] == part, (row["part"], part)
        if start_s is None or document["clock"] == "virtual":
            assert row["time"] is None, row["time"]
        else:
            expected_time = began + datetime.timedelta(seconds=start_s + row["start_s"])
            assert abs((row["time"] - expected_time).total_seconds()) < 2e-6, (row["time"], expected_time)


def logged(run):
    """The samples of each line of the log: by window, tag and start."""
    window, found = 0, {}
    for line in (results / run / "histograms.hlog").read_text(encoding="utf-8").splitlines():
        if line.startswith("#[Window: "):
            window = int(line[len("#[Window: ") : -1])
        if not line.startswith("Tag="):
            continue
        tag, start, length, _, encoded = line[len("Tag=") :].split(",")
        histogram = HdrHistogram.decode(encoded)
        counts = {
            histogram.get_highest_equivalent_value(item.value_iterated_to): item.count_at_value_iterated_to
            for item in histogram.get_recorded_iterator()
        }
        found[(window, tag, float(start), float(length))] = counts
    return found


def check_histograms(run, operations):
    """Checks the histograms against the log of the run, and percentiles against the figures of the run."""
    log, found = logged(run), {}
    for row in table("histograms", run):
        tag = f"{row['operation'].replace(' ', '_').replace(',', '_')}/{row['kind']}"
        place = (row["window_number"], tag, row["clock_s"], row["length_s"])
        latencies, services = found.setdefault(place, ({}, {}))
        if row["count"]:
            latencies[row["latency_ns"]] = row["count"]
        if row["service_count"]:
            services[row["latency_ns"]] = row["service_count"]
    for place, (latencies, services) in found.items():
        window, tag, start, length = place
        service = log.pop(place)
        assert services == service, place
        assert latencies == log.pop((window, f"{tag}/response", start, length), service), place
    assert not log, list(log)
    percentile = rows(
        f"""
        WITH counted AS (
            SELECT operation, kind, latency_ns, sum(count) AS n
            FROM read_parquet('{tables / "histograms.parquet"}')
            WHERE run_path = '{run}' AND part IN ('run', 'stage')
            GROUP BY ALL
        ), ranked AS (
            SELECT *, sum(n) OVER (PARTITION BY operation, kind ORDER BY latency_ns) AS up_to,
                sum(n) OVER (PARTITION BY operation, kind) AS total
            FROM counted
        )
        SELECT operation, kind, min(latency_ns) / 1e6 AS p99_ms, any_value(total) AS total
        FROM ranked WHERE up_to >= ceil(0.99 * total) GROUP BY ALL
        """
    )
    by_operation = {(r["operation"], r["kind"]): r for r in percentile}
    compared = 0
    for row in operations:
        one = by_operation.get((row["operation"], row["kind"]))
        if one is None or row["in_flight"]:
            continue
        assert one["total"] == row["ops"], row["operation"]
        # The figures are read from buckets of other widths, of three significant digits as these.
        assert abs(one["p99_ms"] - row["latency_p99_ms"]) <= 0.002 * row["latency_p99_ms"] + 1e-6, row
        compared += 1
    return compared


def main():
    """Checks every run of the tables."""
    runs = [r["run_path"] for r in rows(f"SELECT DISTINCT run_path FROM '{tables / 'operations.parquet'}'")]
    ids, compared = set(), 0
    for run in runs:
        document, run_id = check_run(run)
        ids.add(run_id)
        operations = check_operations(run, document)
        check_intervals(run, document)
        compared += check_histograms(run, operations)
    assert len(ids) == len(runs), (ids, runs)
    print(f"{len(runs)} runs, {compared} percentiles")


main()
