"""Compares the figures of results for monitoring systems with `run.json` and with each other.

Arguments: the results directory, and the program. OpenMetrics is read by Prometheus's own parser, OTLP by the
protocol buffers of OpenTelemetry.
"""

import json
import math
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

results, program = Path(sys.argv[1]), sys.argv[2]


def report(form):
    return subprocess.run([program, "report", "--format", form, results], check=True, stdout=-1, text=True).stdout


def frozen(name, labels):
    return name, frozenset(labels.items())


# Value and time in nanoseconds of each sample.
prometheus = {}
for family in text_string_to_metric_families(report("openmetrics")):
    assert family.type == "gauge" and family.documentation, family
    for sample in family.samples:
        key = frozen(sample.name, sample.labels)
        assert key not in prometheus, key
        time = sample.timestamp
        prometheus[key] = sample.value, time.sec * 10**9 + time.nsec

opentelemetry = {}
for line in report("otlp").splitlines():
    assert len(line) < 2**20
    request = json_format.Parse(line, ExportMetricsServiceRequest())
    for resource in request.resource_metrics:
        about = {a.key: a.value.string_value for a in resource.resource.attributes}
        assert about["service.name"] == "plimsoll", about
        for metric in resource.scope_metrics[0].metrics:
            assert metric.unit and metric.description
            for point in metric.gauge.data_points:
                labels = {a.key: a.value.string_value for a in point.attributes}
                key = frozen(metric.name, labels)
                assert key not in opentelemetry, key
                opentelemetry[key] = point.as_double, point.time_unix_nano
assert prometheus == opentelemetry, prometheus.items() ^ opentelemetry.items()

# A line: measurement and tags, fields, time. A backslash precedes commas, spaces and `=` of a tag.
influx = {}
for line in report("influx").splitlines():
    head, fields, time = re.split(r"(?<!\\) ", line)
    measurement, *tags = re.split(r"(?<!\\),", head)
    labels = dict(re.split(r"(?<!\\)=", tag) for tag in tags)
    labels = {name: re.sub(r"\\([,= ])", r"\1", value) for name, value in labels.items()}
    for field in fields.split(","):
        name, value = field.split("=")
        influx[frozen(f"{measurement}_{name}", labels)] = float(value), int(time)
assert influx == prometheus, influx.items() ^ prometheus.items()


def only(name, **labels):
    found = [v for k, v in prometheus.items() if k[0] == f"plimsoll_result_{name}" and set(labels.items()) <= k[1]]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def seconds(text):
    return datetime.fromisoformat(text).timestamp()


runs, percentiles = 0, 0
for file in sorted(results.rglob("run.json")):
    run = json.loads(file.read_text())
    path = str(file.parent.relative_to(results))
    runs += 1
    of_run = {"run_path": path, "part": "run", "level": "summary"}
    valid, time = only("valid", **of_run)
    assert valid == (run["validity"]["verdict"] == "valid")
    end = seconds(run["started_at"])
    if run["clock"] == "real":
        windows = [stage["window"] for stage in run.get("stages", [])] or [run]
        ends = [w.get("window_start_s", w.get("start_s")) + w["window_s"] for w in windows]
        end = seconds(run["clock_started_at"]) + max(ends)
    assert abs(time / 1e9 - end) < 1e-3, (time, end)
    rate, _ = only("operations_per_second", **of_run)
    assert math.isclose(rate, run["summary"]["ops"] / run["window_s"], rel_tol=1e-9)
    for row in run["operations"]:
        of_row = {"run_path": path, "part": "run", "operation": row["name"], "kind": row["kind"]}
        assert only("operations", **of_row)[0] == row["ops"]
        assert only("errors", **of_row)[0] == row["errors"]
        p99 = [p for p in row["percentiles"] if p["percentile"] == 99][0]
        found = [v for k, v in prometheus.items() if k[0] == "plimsoll_result_latency_quantile_seconds"
                 and set({**of_row, "quantile": "0.99"}.items()) <= k[1]]
        if p99["enough_samples"]:
            assert math.isclose(found[0][0], p99["ms"] / 1e3), (found, p99)
            percentiles += 1
        bound = [k for k in prometheus if set({**of_row, "bound": "lower"}.items()) <= k[1]]
        bound = any(name.startswith("plimsoll_result_latency") for name, _ in bound)
        assert bound == row.get("max_at_least", False), (bound, row)
print(f"{runs} runs, {percentiles} percentiles, {len(prometheus)} samples")
