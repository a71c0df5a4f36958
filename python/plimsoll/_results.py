"""Results as data frames.

The program converts them to Parquet tables, so that results of every kind and of older versions are read as
its own reports read them, and histograms are decoded in one place.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ._program import run_program

if TYPE_CHECKING:
    from os import PathLike

    import pandas
    import polars

__all__ = ["Kind", "Results", "load"]

#: Kinds of results.
Kind = Literal["run", "repeats", "curve", "search", "profile", "ab", "sweep", "suite"]

#: Kinds of results by their document; a series states its kind.
_KINDS: dict[str, Kind | None] = {"series.json": None, "run.json": "run"}

#: What frames of a library are made with; pandas reads Parquet by means of pyarrow.
_NEEDS: dict[str, tuple[str, ...]] = {"pandas": ("pandas", "pyarrow"), "polars": ("polars",)}

#: Runs that one call of the program reads.
_RUNS_PER_CALL = 200

Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Results(Generic[Frame]):
    """The content of a results directory.

    Each row of a frame has the columns of its run, such as `run_id`, `started_at`, `workload` and `load`:
    docs/reports.md of Plimsoll describes all columns. Units are in their names.
    """

    #: The results directory.
    path: Path
    #: Kind of the results.
    kind: Kind
    #: The content of run.json or series.json.
    document: dict[str, Any]
    #: The content of run.json of each run, by its directory in `path` (the column `run_path`; `.` is `path`).
    runs: dict[str, dict[str, Any]]
    #: A row for each operation of each run, of its windows, stages and ranks, and for all operations together.
    operations: Frame
    #: A row for each operation in each interval.
    intervals: Frame
    #: A row for each bucket of each interval's latency distributions: `count` operations had a latency, and
    #: `service_count` a service time, of about `latency_ns`.
    histograms: Frame
    #: A row for each qualifier of each run: what limits the meaning of the run's figures (docs/validity.md of Plimsoll),
    #: with the columns `run_path`, `kind`, `share` and `text`. In a series, no run is qualified as a single run.
    qualifiers: Frame

    @property
    def run(self) -> dict[str, Any]:
        """The content of run.json of the only run.

        Raises ValueError if there are several; `runs` has them.
        """
        if len(self.runs) != 1:
            raise ValueError(f"{self.path} has {len(self.runs)} runs: `runs` has each of them")
        (run,) = self.runs.values()
        return run


@overload
def load(path: str | PathLike[str], frames: Literal["polars"]) -> Results[polars.DataFrame]: ...


@overload
def load(path: str | PathLike[str], frames: Literal["pandas"]) -> Results[pandas.DataFrame]: ...


# Which library is installed is not known to type checkers.
@overload
def load(path: str | PathLike[str], frames: None = None) -> Results[Any]: ...


def load(path: str | PathLike[str], frames: Literal["pandas", "polars"] | None = None) -> Results[Any]:
    """Reads a results directory of any kind.

    `frames` is the library that the frames are of; without it, pandas if it is installed, and else polars. Only
    with it do type checkers know the frames.

    Raises ProgramError if the results cannot be read, and ImportError if the library is missing, or pyarrow, which
    pandas needs for them.
    """
    library = _library(frames)
    directory = Path(path)
    kind = _kind(directory)
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as tables:
        run_program(["report", "--format=parquet", f"--output={tables}", "--", str(directory)])
        operations, intervals, histograms = (
            _read(library, Path(tables) / f"{name}.parquet")
            for name in ("operations", "intervals", "histograms")
        )
    document: dict[str, Any] = json.loads(run_program(["report", "--format=json", "--", str(directory)]))
    # Every run has rows in this frame, also one that measured nothing.
    paths = list(dict.fromkeys(operations["run_path"]))
    runs = {".": document} if kind == "run" else _runs(directory, paths)
    return Results(
        path=directory,
        kind=kind or document["kind"],
        document=document,
        runs=runs,
        operations=operations,
        intervals=intervals,
        histograms=histograms,
        qualifiers=_qualifiers(library, runs, is_series=kind != "run"),
    )


def _library(frames: Literal["pandas", "polars"] | None) -> Literal["pandas", "polars"]:
    if frames is not None and frames not in ("pandas", "polars"):
        raise ValueError(f"frames is {frames!r}: expected 'pandas', 'polars' or None")
    library = frames
    if library is None:
        library = "polars" if _is_installed("polars") and not _is_installed("pandas") else "pandas"
    missing = [name for name in _NEEDS[library] if not _is_installed(name)]
    if missing:
        other = ', or pass frames="polars"' if frames is None and _is_installed("polars") else ""
        is_missing = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise ImportError(f"{is_missing}: pip install {' '.join(missing)}{other}")
    return library


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _kind(directory: Path) -> Kind | None:
    for name, kind in _KINDS.items():
        if (directory / name).is_file():
            return kind
    raise FileNotFoundError(f"{directory} holds no results of Plimsoll")


def _read(library: Literal["pandas", "polars"], path: Path) -> Any:
    if library == "polars":
        import polars

        return polars.read_parquet(path, memory_map=False)
    import pandas

    return pandas.read_parquet(path, engine="pyarrow")


def _qualifiers(
    library: Literal["pandas", "polars"], runs: dict[str, dict[str, Any]], *, is_series: bool
) -> Any:
    found = [
        (path, qualifier["kind"], qualifier.get("share"), qualifier["text"])
        for path, run in runs.items()
        for qualifier in run.get("qualifiers", [])
        if not (is_series and qualifier["kind"] == "one_run")
    ]
    # The columns have the same types in a frame without rows.
    if library == "polars":
        import polars

        types = {"run_path": polars.String, "kind": polars.String, "share": polars.Float64, "text": polars.String}
        return polars.DataFrame(found, schema=types, orient="row")
    import pandas

    frame = pandas.DataFrame(found, columns=["run_path", "kind", "share", "text"])
    return frame.astype({"share": "float64"})


def _runs(directory: Path, paths: list[str]) -> dict[str, dict[str, Any]]:
    # One call reads all; a call for each would take longer than what it reads.
    runs: list[dict[str, Any]] = []
    for first in range(0, len(paths), _RUNS_PER_CALL):
        some = [str(directory / path) for path in paths[first : first + _RUNS_PER_CALL]]
        found = json.loads(run_program(["report", "--format=json", "--", *some]))
        runs += found if isinstance(found, list) else [found]
    return dict(zip(paths, runs, strict=True))
