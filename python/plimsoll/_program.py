"""The program, which reads results of every version and kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ProgramError", "program", "run_program"]

_NAME = "plimsoll"


class ProgramError(RuntimeError):
    """The program ended with an error, which is the message."""

    def __init__(self, message: str, exit_code: int) -> None:
        # Both are arguments, so that pickling gives the same error.
        super().__init__(message, exit_code)
        #: Exit code of the program: 2 if what it was given is wrong.
        self.exit_code = exit_code

    def __str__(self) -> str:
        return str(self.args[0])


def program() -> Path:
    """Path of the program: that of this package or, if it was installed without, the first in PATH.

    Raises FileNotFoundError if there is none.
    """
    # `pip install --target DIR` puts programs into DIR/bin.
    folders = [str(Path(__file__).resolve().parent.parent / "bin")]
    folders.append(sysconfig.get_path("scripts"))
    user = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", scheme=user))
    for folder in folders:
        path = Path(folder) / _NAME
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(_NAME)
    if found is None:
        raise FileNotFoundError(
            f"no program {_NAME} beside {sys.executable} or in PATH: install {_NAME}, or its wheel"
        )
    return Path(found)


def run_program(arguments: Sequence[str]) -> str:
    """What the program prints when called with these arguments.

    Raises ProgramError if it ends with an error.
    """
    ended = subprocess.run(
        [str(program()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        message = ended.stderr.strip().removeprefix("error: ")
        raise ProgramError(message or f"{_NAME} ended with {ended.returncode}", ended.returncode)
    return ended.stdout
