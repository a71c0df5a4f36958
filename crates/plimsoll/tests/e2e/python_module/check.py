"""Checks the module plimsoll with real results.

usage: check.py RESULTS, a directory with results named after their kinds, and damaged ones
"""

import json
import pathlib
import sys

import pandas
import polars

import plimsoll

results = pathlib.Path(sys.argv[1])


def refused(error, *arguments):
    """The message of the error that a call ends with."""
    try:
        plimsoll.load(*arguments)
    except error as e:
        return str(e)
    raise AssertionError(f"{arguments} are not refused")


one = plimsoll.load(results / "run")
run = json.loads((results / "run" / "run.json").read_text())
assert one.kind == "run" and one.path == results / "run"
assert one.run == one.document == run and one.runs == {".": run}
# pandas is what is chosen if both are there.
for frame in (one.operations, one.intervals, one.histograms):
    assert isinstance(frame, pandas.DataFrame), type(frame)
summary = one.operations.query("part == 'run' and level == 'summary'")
assert summary["ops"].tolist() == [run["summary"]["ops"]]
lines = pandas.read_csv(results / "run" / "intervals.csv")
assert one.intervals["ops"].tolist() == lines["ops"].tolist()
assert one.intervals["operation"].tolist() == lines["operation"].tolist()
assert one.intervals["latency_p99_ms"].dropna().tolist() == lines["p99_ms"][lines["ops"] > 0].tolist()
measured = one.histograms.query("part == 'run'").groupby(["operation", "kind"])["count"].sum()
for operation in run["operations"]:
    if operation["ops"] > 0:
        assert measured[operation["name"], operation["kind"]] == operation["ops"], operation["name"]
assert str(one.operations["started_at"].dtype).startswith("datetime64"), one.operations["started_at"].dtype

for kind, share, text in one.qualifiers[["kind", "share", "text"]].itertuples(index=False):
    (found,) = [q for q in run["qualifiers"] if q["text"] == text]
    assert found["kind"] == kind
    assert found["share"] == share if "share" in found else pandas.isna(share)
assert len(one.qualifiers) == len(run["qualifiers"]) > 0 and set(one.qualifiers["run_path"]) == {"."}
# The files of the run are in memory, and a single run shows no spread.
assert {"measures_memory", "one_run"} <= set(one.qualifiers["kind"])

same = plimsoll.load(str(results / "run"), frames="polars")
for name in ("operations", "intervals", "histograms"):
    frame = getattr(same, name)
    assert isinstance(frame, polars.DataFrame), type(frame)
    assert frame.shape == getattr(one, name).shape and frame.columns == list(getattr(one, name).columns)
assert same.qualifiers.columns == list(one.qualifiers.columns)
assert same.qualifiers["text"].to_list() == one.qualifiers["text"].tolist()
assert same.intervals["ops"].sum() == lines["ops"].sum()

repeats = plimsoll.load(results / "repeats")
assert repeats.kind == "repeats" and list(repeats.runs) == ["run-01", "run-02"]
assert [run["directory"] for run in repeats.document["runs"]] == ["run-01", "run-02"]
assert [r["seed"] for r in repeats.runs.values()] == repeats.operations.groupby("run_path")["seed"].first().tolist()
memory = repeats.qualifiers.query("kind == 'measures_memory'")
assert memory["run_path"].tolist() == ["run-01", "run-02"] and memory["share"].tolist() == [1.0, 1.0]
assert "one_run" not in set(repeats.qualifiers["kind"])
try:
    repeats.run
except ValueError as e:
    assert "has 2 runs" in str(e), e
else:
    raise AssertionError("repeated runs are not one run")

curve = plimsoll.load(results / "curve")
assert curve.kind == "curve"
assert list(curve.runs) == [point["directory"] for point in curve.document["runs"]]
loads = curve.operations.query("level == 'summary'").set_index("load")["ops_per_s"]
for point in curve.document["runs"]:
    assert loads[point["load"]] == point["achieved_ops_per_s"], point["load"]

# Virtual time says nothing about the machine: there may be no row, but there are the columns.
for frames in ("pandas", "polars"):
    empty = plimsoll.load(results / "curve", frames=frames).qualifiers
    assert set(empty["kind"]) <= {"not_steady"} and str(empty["share"].dtype).lower() == "float64", frames

search = plimsoll.load(results / "search")
assert search.kind == "search"
assert list(search.runs) == [run["directory"] for run in search.document["runs"]]
achieved = search.operations.query("level == 'summary'")["ops_per_s"].tolist()
assert achieved == [run["achieved_ops_per_s"] for run in search.document["runs"]]

profile = plimsoll.load(results / "profile")
configurations = profile.document["configurations"]
assert profile.kind == "profile" and len(configurations) == 2
assert list(profile.runs) == [run["directory"] for run in profile.document["runs"]]
summary = profile.operations.query("level == 'summary'")
filesystems = [configuration["filesystem"] for configuration in configurations]
assert summary["profile_filesystem"].tolist() == filesystems == ["ext4", "xfs"]
assert summary["ops"].tolist() == [run["summary"]["ops"] for run in profile.runs.values()]

assert "holds no results of Plimsoll" in refused(FileNotFoundError, results)
assert "frames is 'spark'" in refused(ValueError, results / "run", "spark")
assert "histograms.hlog:" in refused(plimsoll.ProgramError, results / "damaged")
print(plimsoll.program())
