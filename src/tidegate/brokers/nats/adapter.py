"""NATS behind the port: MQTT listeners, and a log in slices that JetStream keeps."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from tidegate.brokers.nats.attribution import slice_of
from tidegate.brokers.nats.backlog import measure, spans
from tidegate.brokers.nats.finding import next_sequence
from tidegate.brokers.nats.monitoring import read_brokers
from tidegate.brokers.nats.purging import purge_committed
from tidegate.brokers.nats.sessions import Sessions
from tidegate.brokers.port import Credentials, EmbeddedServers, Rows, SliceRange, Span
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.wire import Wire
from tidegate.model.backlog import Backlog
from tidegate.model.errors import SequenceGapError
from tidegate.model.installation import Installation, LogAddress
from tidegate.model.observations import BrokerState


class NatsLog:
    """The streams ``SLICE_0`` … over one connection."""

    def __init__(self, address: LogAddress, name: str, timeout_s: float) -> None:
        self._slices = address.slices
        self._sessions = Sessions()
        self._wire = Wire(address.urls, timeout_s=timeout_s, name=name)

    def backlog(self, committed: Mapping[int, int]) -> Backlog:
        return measure(self._wire, self._slices, committed, sessions=self._sessions)

    def slice_of(self, device: str) -> int:
        return slice_of(device, self._slices)

    def spans(self, slices: Sequence[int]) -> dict[int, Span]:
        return spans(self._wire, slices)

    def read(self, wanted: Sequence[SliceRange]) -> Generator[Rows, None, None]:
        from tidegate.brokers.nats.fetch import fetch  # noqa: PLC0415 - Arrow is slow to import, and few read

        others = len(self._wire.urls) - 1
        while True:
            try:
                for rows in fetch(self._wire, wanted):
                    wanted = [_behind(one, rows) for one in wanted]
                    yield rows
            except SequenceGapError:
                self._wire.close()
                if not others:
                    raise
                others -= 1  # a broker answers with its own copy, and another's may be whole: it is asked next
            except BaseException:
                self._wire.close()  # an answer may still be on its way: the next read must not see it
                raise
            else:
                return

    def next_sequence(self, slice_: int, sequence: int) -> int | None:
        return next_sequence(self._wire, slice_, sequence)

    def purge(self, committed: Mapping[int, int]) -> dict[int, int]:
        return purge_committed(self._wire, committed)

    def close(self) -> None:
        self._wire.close()


def _behind(wanted: SliceRange, rows: Rows) -> SliceRange:
    """What is left of a range after these rows."""
    if wanted.slice != rows.slice or not wanted.after < rows.first <= wanted.last:
        return wanted
    return wanted._replace(after=rows.first + len(rows.payloads) - 1)


class NatsBrokers:
    def __init__(self, installation: Installation, name: str, timeout_s: float) -> None:
        self._monitor_urls = installation.monitor_urls
        self.addresses = installation.mqtt_addresses
        self.credentials = Credentials(installation.mqtt_user, installation.mqtt_password)
        self.log = None if installation.log is None else NatsLog(installation.log, name, timeout_s)

    def states(self) -> tuple[BrokerState, ...]:
        return read_brokers(self.addresses, self._monitor_urls)

    def close(self) -> None:
        if self.log is not None:
            self.log.close()


def open_brokers(installation: Installation, *, name: str, timeout_s: float) -> NatsBrokers:
    return NatsBrokers(installation, name, timeout_s)


def open_log(address: LogAddress, *, name: str, timeout_s: float) -> NatsLog:
    return NatsLog(address, name, timeout_s)


def embedded(state_directory: Path, settings: BrokerSettings) -> EmbeddedServers:
    from tidegate.brokers.nats.embedded import EmbeddedBrokers  # noqa: PLC0415 - only a process that starts servers needs it

    return EmbeddedBrokers(state_directory, settings)
