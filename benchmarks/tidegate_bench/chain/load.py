"""The load of ``bench chain`` as a process of its own: ``python -m tidegate_bench.chain.load``.

It connects its devices, says so in a line of JSON, and waits for lines on its standard input: ``{"rate": 5000,
"seconds": 20}`` sends that many readings a second, spread evenly over the devices; a rate of 0 sends as fast as they
are acknowledged; ``stop`` ends that early, and so does a connection that is lost. When everything that it sent is
acknowledged it says in a line how it went.
"""

import argparse
import gc
import json
import select
import sys
import time
from array import array
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Credentials
from tidegate_bench.chain.devices import WINDOW, FlatOut, LoadDevice, Schedule
from tidegate_bench.rig import clients as mqtt_clients
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.percentiles import percentile
from tidegate_bench.rig.processes import allow_open_files

DRAIN_S = 30.0
# What is due is sent so often: a wake-up costs as much as a message.
TICK_S = 0.004
STOP = "stop"


class Load:
    def __init__(self, address: tuple[str, int], devices: int, name: str, as_whom: Credentials) -> None:
        self._took_ms = array("f")
        self._devices = [LoadDevice(place, f"{name}-{place}", self._took_ms) for place in range(devices)]
        self._open = partial(mqtt_clients.open_clients, address, devices, name=name, credentials=as_whom)
        # Without a buffer: a line that was read ahead would wake nobody up.
        self.told = FileIO(sys.stdin.fileno(), closefd=False)
        self._connect()

    def _connect(self) -> None:
        self._poll = select.epoll()
        self._poll.register(self.told, select.EPOLLIN)
        for device, client in zip(self._devices, self._open(), strict=True):
            device.connected(client.socket)
            self._poll.register(client.socket, select.EPOLLIN)
        self._by_number = {device.socket.fileno(): device for device in self._devices}

    def send(self, rate_per_s: float, seconds: float) -> dict[str, Any]:
        """One load from its first reading to its last acknowledgement."""
        self._took_ms[:] = array("f")
        self._is_stopped = False
        before = self._sent(), self._acked()
        for device in self._devices:
            device.due = device.turn = 0
        began_s, used_s = time.time(), time.process_time()
        late_s_max = self._paced(rate_per_s, seconds) if rate_per_s else self._flat_out(seconds)
        sending_s = time.time() - began_s
        acked = self._acked() - before[1]
        self._until(lambda: not any(device.in_flight for device in self._devices), DRAIN_S)
        took_ms = sorted(self._took_ms) or [0.0]
        return {
            "began_s": began_s,
            "sending_s": round(sending_s, 3),
            "sent": self._sent() - before[0],
            "acked": self._acked() - before[1],
            "acked_per_s": round(acked / sending_s),
            "late_s_max": round(late_s_max, 3),
            "ack_ms_p50": round(percentile(took_ms, 50), 2),
            "ack_ms_p99": round(percentile(took_ms, 99), 2),
            "load_cpu_s": round(time.process_time() - used_s, 3),
            "connections_lost": self._lost(),
            "stopped": self._is_stopped,
        }

    def recover(self) -> None:
        """Where connections were lost, all devices connect anew."""
        if self._lost():
            self._poll.close()
            for device in self._devices:
                device.socket.close()
            self._connect()

    def _lost(self) -> int:
        return sum(device.is_lost for device in self._devices)

    def _paced(self, rate_per_s: float, seconds: float) -> float:
        schedule, total, released = Schedule(rate_per_s, len(self._devices)), round(rate_per_s * seconds), 0

        def release() -> bool:
            nonlocal released
            now_s = time.monotonic()
            due = min(total, schedule.due(now_s))
            chosen = [self._devices[number % len(self._devices)] for number in range(released, due)]
            released = due
            for device in chosen:
                device.due += 1
            for device in chosen[-len(self._devices) :]:
                self._send(device, schedule, now_s)
            return released == total and not any(device.due for device in self._devices)

        self._until(release, seconds + DRAIN_S, schedule)
        return schedule.late_s_max

    def _flat_out(self, seconds: float) -> float:
        until_s, schedule = time.monotonic() + seconds, FlatOut()
        for device in self._devices:
            device.due = sys.maxsize
            self._send(device, schedule, time.monotonic())
        self._until(lambda: time.monotonic() >= until_s, seconds + DRAIN_S, schedule)
        for device in self._devices:
            device.due = 0
        return 0.0

    def _until(self, is_done: Callable[[], bool], seconds: float, schedule: Schedule | FlatOut | None = None) -> None:
        """Take what is acknowledged, and send what then has room, until it is done, stopped or takes too long."""
        until_s = time.monotonic() + seconds
        while not is_done() and time.monotonic() < until_s:
            time.sleep(TICK_S)
            now_s = time.monotonic()
            for number, event in self._poll.poll(0):
                device = self._by_number.get(number)
                if device is None:
                    self._hear()
                    continue
                if event & select.EPOLLOUT:
                    device.go_on()
                    self._watch(device)
                if event & ~select.EPOLLOUT:
                    device.receive(now_s)
                if device.is_lost:
                    self._poll.unregister(number)
                    self._is_stopped = True
                elif schedule is not None:
                    self._send(device, schedule, now_s)
            if self._is_stopped and schedule is not None:
                return

    def _send(self, device: LoadDevice, schedule: Schedule | FlatOut, now_s: float) -> None:
        if device.due and not device.is_blocked and not device.is_lost:
            device.send(schedule, now_s)
            if device.is_blocked:
                self._watch(device)

    def _watch(self, device: LoadDevice) -> None:
        self._poll.modify(device.socket.fileno(), select.EPOLLIN | (select.EPOLLOUT if device.is_blocked else 0))

    def _hear(self) -> None:
        """A line while a load runs ends it; so does the end of the input."""
        self.told.readline()
        self._is_stopped = True

    def _sent(self) -> int:
        return sum(device.sent for device in self._devices)

    def _acked(self) -> int:
        return sum(device.acked for device in self._devices)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.chain.load")
    parser.add_argument("--state", type=Path, required=True, help="directory that says as whom to connect")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--name", default="load", help="the devices' names begin so")
    options = parser.parse_args()
    allow_open_files()
    here = load_installation(options.state)
    load = Load((options.host, options.port), options.devices, options.name, credentials(here))
    gc.disable()
    _say({"connected": options.devices, "window": WINDOW})
    while line := load.told.readline():
        if line.strip() != STOP.encode():  # one that came too late
            asked = json.loads(line)
            load.recover()
            _say(load.send(asked["rate"], asked["seconds"]))


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
