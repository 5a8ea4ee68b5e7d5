"""One installation under load: a rate held for a while, and how old its readings were when the tables had them."""

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.client import Bus
from tidegate.bus.documents import MODE
from tidegate.local.chain import Chain
from tidegate.local.waiting import wait_until
from tidegate.model.decisions import Mode
from tidegate.model.errors import TidegateError
from tidegate.pipeline.ages import Ages
from tidegate.report.progress import Progress
from tidegate.settings.tree import Settings
from tidegate_bench.chain import shares
from tidegate_bench.chain.load import STOP
from tidegate_bench.rig.children import Child

DEVICES = 500
AGE_S_MAX = 2.0
# A load that is this far behind is not held any more: the rest of its time is saved.
BEHIND_S_MAX = 3 * AGE_S_MAX
LOOK_S = 0.2
WATCH_S = 1.0
SETTLE_S_MAX = 180.0
# Readings that nobody acknowledged may be stored or not: after this long without one, no more are waited for.
QUIET_S = 10.0
STAMP_S = 0.001  # a reading's time is rounded


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    brokers: int
    durability: str

    @property
    def name(self) -> str:
        return f"{self.brokers}-{self.durability}"

    def settings(self) -> BrokerSettings:
        return msgspec.convert({"nodes": self.brokers, "durability": self.durability}, BrokerSettings)


class Site:
    """A running chain and the load before it. Protection is off: what is looked for is where it would be needed."""

    def __init__(self, chain: Chain, load: Child) -> None:
        self._chain, self._load = chain, load
        self._watched_s = 0.0

    def hold(self, rate_per_s: float, warm_s: float, seconds: float) -> dict[str, Any]:
        """So many readings a second; what counts begins after ``warm_s`` and lasts ``seconds``."""
        ages = Ages(Path(self._chain.installation.tables) / "readings")
        self._load.tell(json.dumps({"rate": rate_per_s, "seconds": warm_s + seconds}))
        found = self._watched(ages, rate_per_s, warm_s, warm_s + seconds)
        said = self._load.answer()
        self._settle(ages, said)
        rows = ages.rows()
        taken_s, arrived_s, committed_s = (rows[name].to_numpy() for name in ("taken_s", "arrived_s", "committed_s"))
        counted = taken_s >= said["began_s"] + warm_s
        stored = _stored(ages, said["began_s"])
        row = {"rate_per_s": rate_per_s, "seconds": seconds, "stored": stored, **said, "shares": found}
        row |= _ages(taken_s[counted], arrived_s[counted], committed_s[counted])
        return {**row, "held": is_held(row)}

    def _watched(self, ages: Ages, rate_per_s: float, warm_s: float, end_s: float) -> dict[str, float]:
        """Look after the chain until the load has said how it went; the processors that its parts kept busy."""
        began_s = time.monotonic()
        before, before_s = self._cpu_s(), 0.0
        after, after_s = before, 0.0
        while not self._load.has_answered:
            time.sleep(LOOK_S)
            self._look_after(ages)
            passed_s = time.monotonic() - began_s
            if passed_s < warm_s or before_s == 0.0:
                before, before_s = self._cpu_s(), passed_s
            elif passed_s < end_s:
                after, after_s = self._cpu_s(), passed_s
                if passed_s - ages.messages / rate_per_s > BEHIND_S_MAX:
                    self._load.tell(STOP)
                    end_s = passed_s
        return shares.shares(before, after, max(LOOK_S, after_s - before_s))

    def _cpu_s(self) -> shares.CpuSeconds:
        return shares.cpu_s(self._chain, self._load.pid)

    def _look_after(self, ages: Ages) -> None:
        ages.follow()
        if time.monotonic() - self._watched_s > WATCH_S:
            self._watched_s = time.monotonic()
            self._chain.watch()

    def _settle(self, ages: Ages, said: dict[str, Any]) -> None:
        """The next load begins when the tables have everything of this one, whether it was acknowledged or not."""
        changed_s, messages, stored = time.monotonic(), -1, 0

        def is_stored() -> bool:
            nonlocal changed_s, messages, stored
            self._look_after(ages)
            if ages.messages != messages:
                changed_s, messages, stored = time.monotonic(), ages.messages, _stored(ages, said["began_s"])
            is_quiet = time.monotonic() - changed_s > QUIET_S
            return stored >= said["sent"] or (stored >= said["acked"] and is_quiet)

        if not wait_until(is_stored, SETTLE_S_MAX, LOOK_S):
            raise TidegateError(
                f"{said['acked'] - stored} acknowledged readings are not in the table after {SETTLE_S_MAX:.0f} s: "
                f"see the logs in {self._chain.state}."
            )


def _stored(ages: Ages, began_s: float) -> int:
    """Of the load that began then: what an earlier one had in flight when it lost connections may come late."""
    return int((ages.rows()["taken_s"].to_numpy() >= began_s - STAMP_S).sum())


def is_held(row: dict[str, Any]) -> bool:
    """Everything was sent, acknowledged and stored, and ninety-nine of a hundred readings soon enough."""
    return bool(
        not row["stopped"] and row["acked"] == row["sent"] == row["stored"] > 0 and row["age_s_p99"] <= AGE_S_MAX
    )


def _ages(
    taken_s: npt.NDArray[np.float64], arrived_s: npt.NDArray[np.float64], committed_s: npt.NDArray[np.float64]
) -> dict[str, float]:
    def at(seconds: npt.NDArray[np.float64], share: float) -> float:
        return round(float(np.quantile(seconds, share)), 3) if len(seconds) else float("inf")

    age_s = committed_s - taken_s
    return {
        "age_s_p50": at(age_s, 0.5),
        "age_s_p99": at(age_s, 0.99),
        "into_log_s_p99": at(arrived_s - taken_s, 0.99),
        "into_table_s_p99": at(committed_s - arrived_s, 0.99),
    }


@contextlib.contextmanager
def started_chain(
    configuration: Configuration, nodes: int, directory: Path | None, progress: Progress
) -> Iterator[Chain]:
    """A chain of its own with shipped settings, in a directory that is new."""
    with contextlib.ExitStack() as opened:
        if directory is None:
            state = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-chain-")))
        else:
            state = directory.absolute() / configuration.name
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir(parents=True)
        environment = {"TIDEGATE_BROKER__DURABILITY": configuration.durability}
        settings = Settings(broker=configuration.settings())
        chain = opened.enter_context(
            Chain(state, settings, progress.update, nodes=nodes, environment=environment, logs=True)
        )
        progress.step(f"Starting {configuration.brokers} broker(s), {configuration.durability}.")
        chain.start_brokers()
        with Bus(chain.installation.control_urls) as bus:
            bus.put(MODE, Mode(send_rate="off"))
        chain.start_parts()
        for _ in chain.ready():
            pass
        yield chain


@contextlib.contextmanager
def started_load(state: Path, address: tuple[str, int] | None) -> Iterator[Child]:
    """Its devices are connected."""
    assert address is not None
    host, port = address
    with Child("chain.load", log=state / "load.log", state=state, host=host, port=port, devices=DEVICES) as load:
        load.answer()
        yield load
