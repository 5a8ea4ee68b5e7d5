"""One process of a gateway: ``python -m tidegate.gateway.processes.worker``, told on standard input what it is.

It keeps one set of listeners, and beside it those whose process died until another keeps them. It ends with its
supervisor, however that ends.
"""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
from collections import deque

import msgspec
import uvloop

from tidegate.gateway.listening import Bound
from tidegate.gateway.processes.orders import Order
from tidegate.gateway.server import Gateway
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.peers import Mailbox, Peers
from tidegate.model.errors import TidegateError

LOOK_S = 0.1
# New objects, and young and middle generations, before the collector looks; it takes time from every client.
COLLECTOR = (20_000, 20, 50)
LATE_OVER_S = 1.0  # how late it is, is the most of this time
EXIT_CANNOT = 2
_PR_SET_PDEATHSIG = 1


class Worker:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._shared = Shared.from_fd(order.memory)
        self._cells = self._shared.rows[order.slot].cells
        self._cells[layout.PID] = os.getpid()
        self._listener_sets = _listener_sets(order)
        self._adopted: dict[int, list[asyncio.Server]] = {}
        self._late_s: deque[float] = deque(maxlen=round(LATE_OVER_S / LOOK_S))
        self._stopping = asyncio.Event()
        self._draining = asyncio.Event()

    async def run(self) -> None:
        order, loop = self._order, asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGUSR1, self._draining.set)
        peers = Peers(order.slot, [Mailbox.from_fds(fds) for fds in order.mailboxes])
        gateway = Gateway(
            order.installation,
            order.settings,
            _say if order.listener_set == 0 else _say_nothing,
            order.classes,
            order.identity,
            shared=self._shared,
            slot=order.slot,
            bound=self._listener_sets.pop(order.listener_set),
            peers=peers,
            strict=order.strict,
        )
        try:
            await gateway.start()
            _tame_collector()
            self._cells[layout.READY] = 1
            await self._serve(gateway)
        finally:
            await gateway.stop()

    async def _serve(self, gateway: Gateway) -> None:
        """Until it is told to stop, or has sent all of its clients away."""
        stopping = asyncio.create_task(self._stopping.wait())
        draining = asyncio.create_task(self._draining.wait())
        looking = asyncio.create_task(self._look(gateway))
        assert gateway.looking is not None
        await asyncio.wait((stopping, draining, looking, gateway.looking), return_when=asyncio.FIRST_COMPLETED)
        if gateway.looking.done():
            gateway.looking.result()
        if looking.done():
            looking.result()
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        if not self._stopping.is_set():
            self._cells[layout.DRAINING] = 1
            self._leave_listeners()
            leaving = asyncio.create_task(gateway.drain(self._order.settings.drain_s))
            await asyncio.wait((stopping, leaving), return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)

    async def _look(self, gateway: Gateway) -> None:
        """Feel how late this process is, and accept connections where no process does."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self._late_s.append(loop.time() - due_s)
            self._cells[layout.LATE_US] = round(max(self._late_s) * 1e6)
            for number, sockets in self._listener_sets.items():
                if self._shared.unattended[number] and number not in self._adopted:
                    opened = self._adopted[number] = []
                    for one in sockets:
                        opened.append(await gateway.open(Bound(one.listener, one.sock.dup())))
                elif not self._shared.unattended[number]:
                    for server in self._adopted.pop(number, ()):
                        server.close()

    def _leave_listeners(self) -> None:
        """Whoever keeps them now need not share them: a gateway that ends must not hold the port."""
        for servers in self._adopted.values():
            for server in servers:
                server.close()
        self._adopted.clear()
        for sockets in self._listener_sets.values():
            for one in sockets:
                one.sock.close()
        self._listener_sets.clear()


def _listener_sets(order: Order) -> dict[int, list[Bound]]:
    """Every set's sockets. Those for HTTP are the same in all sets, so they are opened for its own alone."""
    return {
        number: [
            Bound(listener, socket.socket(fileno=fd))
            for listener, fd in zip(order.listeners, fds, strict=True)
            if number == order.listener_set or listener.protocol != "http"
        ]
        for number, fds in enumerate(order.listener_sets)
    }


def _tame_collector() -> None:
    """What is there now stays: the collector need not look at it. Cycles that connections leave behind may wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)


def _end_with(supervisor_pid: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != supervisor_pid:  # it was gone already
        sys.exit(0)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _say_nothing(_: str) -> None:
    """What concerns all processes is said by one of them."""


def main() -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor's affair, also where a whole group is told
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    _end_with(order.supervisor_pid)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(Worker(order).run())
    except TidegateError as error:
        print(error, flush=True)  # noqa: T201 - the supervisor says it
        return EXIT_CANNOT
    return 0


if __name__ == "__main__":
    sys.exit(main())
