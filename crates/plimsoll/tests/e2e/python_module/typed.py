"""What a type checker is to know of the module plimsoll."""

from typing import Any

import pandas
import polars
from typing_extensions import assert_type

import plimsoll

assert_type(plimsoll.load("r"), plimsoll.Results[Any])
assert_type(plimsoll.load("r", frames=None), plimsoll.Results[Any])
assert_type(plimsoll.load("r", frames="pandas"), plimsoll.Results[pandas.DataFrame])
assert_type(plimsoll.load("r", frames="pandas").intervals, pandas.DataFrame)
assert_type(plimsoll.load("r", frames="polars").histograms, polars.DataFrame)
assert_type(plimsoll.load("r").kind, plimsoll.Kind)
