"""Scenario files: YAML, with the scenario's keys and the strategies to try in it."""

from pathlib import Path

import msgspec

from tidegate.model.errors import UserError
from tidegate.settings import reading as documents
from tidegate.settings.located import Located
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
    _refuse_old_keys(document)
    found = documents.read(document.values, ScenarioFile, document.place, documents.YAML)
    if found.replay is None:
        return found
    replay = msgspec.structs.replace(found.replay, file=str(path.parent / found.replay.file))
    return msgspec.structs.replace(found, replay=replay)


def _parse(path: Path) -> Located:
    try:
        found = Located(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: name a scenario file, like examples/scenarios/flood.yaml.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a readable YAML file.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not YAML (it is no text in UTF-8): save it as that.") from None
    if not isinstance(found.values, dict):
        raise UserError(
            f"{path} is {documents.show(found.values)}: a scenario has keys with values, first of all its name."
        )
    return found


def _refuse_old_keys(document: Located) -> None:
    strategies = document.values.get("strategies")
    tables = {"service": document.values.get("service")}
    if isinstance(strategies, list):
        tables |= {f"strategies[{number}]": strategy for number, strategy in enumerate(strategies)}
    for place, table in tables.items():
        for old, new in _RENAMED.items():
            if isinstance(table, dict) and old in table:
                here = document.place((*documents.parts(place), old))
                raise UserError(f"{here}: {place}.{old} is now called {new}: rename it.")
