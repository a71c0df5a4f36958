"""Results of the benchmark Plimsoll as data frames.

>>> import plimsoll
>>> results = plimsoll.load("plimsoll-results/varmail-20260301-140502")
>>> results.run["summary"]["ops_per_s"]
>>> results.intervals
"""

from ._program import ProgramError, program
from ._results import Kind, Results, load

__all__ = ["Kind", "ProgramError", "Results", "load", "program"]
