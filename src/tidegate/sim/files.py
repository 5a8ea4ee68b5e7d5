"""Scenario files: YAML, with the scenario's keys and the strategies to try in it."""

from pathlib import Path
from typing import Any

import msgspec

from tidegate.model.errors import UserError
from tidegate.settings import reading as documents
from tidegate.sim.scenario import Scenario, Strategy

# Keys of earlier versions whose new name nobody would guess, and no likeness of spelling finds.
_RENAMED = {"instances": "nodes_at_start"}


class ScenarioFile(Scenario, frozen=True, kw_only=True):
    """A scenario and, where the file names any, what to try in it."""

    strategies: tuple[Strategy, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        titles = [strategy.title for strategy in self.strategies]
        twice = next((title for title in titles if titles.count(title) > 1), None)
        if twice is not None:
            raise UserError(f"Two strategies are called {twice}: give each its own name.")


def load(path: Path) -> ScenarioFile:
    """What the file says. A recording is looked for beside it."""
    document = _parse(path)
    _refuse_old_keys(document, path)
    found = documents.read(document, ScenarioFile, str(path), documents.YAML)
    if found.replay is None:
        return found
    replay = msgspec.structs.replace(found.replay, file=str(path.parent / found.replay.file))
    return msgspec.structs.replace(found, replay=replay)


def _parse(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.yaml.decode(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: name a scenario file, like examples/scenarios/flood.yaml.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a readable YAML file.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not YAML ({_one_line(error)}): correct that place.") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is {documents.show(found)}: a scenario has keys with values, first of all its name.")
    return found


def _refuse_old_keys(document: dict[str, Any], path: Path) -> None:
    strategies = document.get("strategies")
    tables = {"service": document.get("service")}
    if isinstance(strategies, list):
        tables |= {f"strategies[{number}]": strategy for number, strategy in enumerate(strategies)}
    for place, table in tables.items():
        for old, new in _RENAMED.items():
            if isinstance(table, dict) and old in table:
                raise UserError(f"{path}: {place}.{old} is now called {new}: rename it.")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("YAML parsing error: ") or type(error).__name__
