"""Compiles the gateway's per-message path where mypy and a C compiler are. Elsewhere the same source runs as it is.

Which modules those are, and all else about the package, is in pyproject.toml.
"""

import sys
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

COMPILED = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["tidegate"]["compiled"]


def say(error: BaseException) -> None:
    sys.stderr.write(f"The gateway's per-message path is not compiled and runs as Python: {error}.\n")


class AllOrNone(build_ext):
    """A module that is compiled in part cannot be imported: where one part does not build, there is none."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except Exception as error:
            say(error)
            self.extensions = []


def extensions() -> list[Extension]:
    """What mypy makes of the source; nothing where it is missing or does not like it."""
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - not there for everybody

        return list(mypycify(COMPILED, opt_level="3", group_name="tidegate_compiled"))
    except (ImportError, SystemExit) as error:
        say(error)
        return []


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
