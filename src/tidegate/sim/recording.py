"""Recorded arrivals, read from a CSV or Parquet file."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidegate.model.errors import UserError
from tidegate.sim.scenario import Replay


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """``free``: times of messages that nobody can hold, by class; ``devices``: class, name and times of each device."""

    free: dict[str, tuple[float, ...]] = {}
    devices: tuple[tuple[str, str, tuple[float, ...]], ...] = ()


def load(replay: Replay, classes: Sequence[str]) -> Recording:
    """The recording, in the order of time and with its first message at its own second."""
    columns = _columns(replay)
    times = _seconds(replay, columns[replay.seconds_column])
    names = columns.get(replay.class_column) or [classes[0]] * len(times)
    _check(replay, names, classes)
    devices = columns.get(replay.device_column) if replay.controllable else None
    if devices is None:
        free: dict[str, list[float]] = {}
        for at_s, name in zip(times, names, strict=True):
            free.setdefault(name, []).append(at_s)
        return Recording(free={name: tuple(sorted(found)) for name, found in free.items()})
    found: dict[tuple[str, str], list[float]] = {}
    for at_s, name, device in zip(times, names, devices, strict=True):
        found.setdefault((name, str(device)), []).append(at_s)
    return Recording(devices=tuple((name, device, tuple(sorted(own))) for (name, device), own in found.items()))


def _columns(replay: Replay) -> dict[str, list[Any]]:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and most scenarios replay nothing
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    path = Path(replay.file)
    try:
        table = pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"The recording {path} does not exist: name a CSV or Parquet file under replay.file.") from None
    except OSError as error:
        raise UserError(f"The recording {path} cannot be read ({error}): name a CSV or Parquet file.") from None
    except pa.ArrowInvalid as error:
        raise UserError(f"The recording {path} is no table ({error}): name a CSV or Parquet file.") from None
    if replay.seconds_column not in table.column_names:
        raise UserError(
            f"The recording {path} has no column {replay.seconds_column}: it has {', '.join(table.column_names)}; "
            "name the column of seconds under replay.seconds_column."
        )
    wanted = (replay.seconds_column, replay.class_column, replay.device_column)
    return {name: table[name].to_pylist() for name in wanted if name in table.column_names}


def _check(replay: Replay, names: list[Any], classes: Sequence[str]) -> None:
    for row, name in enumerate(names, start=1):
        if name not in classes:
            raise UserError(
                f"The recording {replay.file} has the class {name!r} in row {row}, which the scenario does not: "
                f"it has {', '.join(classes)}."
            )


def _seconds(replay: Replay, values: list[Any]) -> list[float]:
    """One column of another kind than numbers comes as texts: the row that is to blame is found here."""
    if not values:
        raise UserError(f"The recording {replay.file} is empty: record at least one message.")
    found = []
    for row, value in enumerate(values, start=1):
        try:
            at_s = float(value)
        except (TypeError, ValueError):
            at_s = math.nan
        if not 0 <= at_s < math.inf:
            raise UserError(
                f"The recording {replay.file} has {value!r} as {replay.seconds_column} in row {row}: "
                "expected seconds from 0 on."
            )
        found.append(at_s)
    return found
