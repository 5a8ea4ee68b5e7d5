"""mosquitto_sub and mosquitto_pub: a process that listens, and one more for each publish."""

import asyncio
import contextlib
import os
import re
import signal
from typing import Any

from tidegate_bench.interop.peer import NO_EXTRAS, ConnectAnswer, Endpoint, Extras, Heard, InteropPeer, Options, in_time

_FORMAT = "HEARD\t%t\t%q\t%r\t%x\t%C\t%R\t%D\t%S\t%E\t%P"
_CONNACK = re.compile(r"received CONNACK \((\d+)\)")
_SUBSCRIBED = re.compile(r"^Subscribed \(mid: \d+\): (.*)$")
_ACKNOWLEDGED = re.compile(r"received PUB(?:ACK|COMP) \(Mid: (\d+), RC:(\d+)\)")
_DISCONNECTED = re.compile(r"received DISCONNECT \((\d+)\)")
_PUBLISHED = re.compile(r"received PUBLISH \(d(\d)")
_LINE_BYTES_MAX = 4 * 1024**2
_VERSIONS = {4: "mqttv311", 5: "mqttv5"}


class MosquittoPeer(InteropPeer):
    KIND = "mosquitto"
    KEEP_ALIVE_S_MIN = 5

    def __init__(self, endpoint: Endpoint, options: Options, prefix: str) -> None:
        super().__init__(endpoint, options, prefix)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connected: asyncio.Future[int | str] = self._loop.create_future()
        self._granted: asyncio.Future[tuple[int, ...]] = self._loop.create_future()
        self._duplicate: bool | None = None
        self._published = 0

    def _reach(self, client_id: str) -> list[str]:
        endpoint = self.endpoint
        password = endpoint.password if self.options.password is None else self.options.password
        return [
            *("-h", endpoint.host, "-p", str(endpoint.port), "-u", endpoint.user, "-P", password),
            *("-V", _VERSIONS[endpoint.version], "-i", client_id, "-d"),
        ]

    async def open(
        self,
        *filters: tuple[str, int],
        again: bool = False,  # noqa: ARG002
        identifier: int | None = None,
    ) -> ConnectAnswer:
        """Without a filter nothing listens: publishing is another process."""
        if not filters:
            return ConnectAnswer(code=0)
        self._process = await asyncio.create_subprocess_exec(
            *(
                "stdbuf",
                "-oL",
                "mosquitto_sub",
                *self._reach(self.options.client_id),
                *self._listening(filters, identifier),
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=_LINE_BYTES_MAX,
        )
        self._reader = self._loop.create_task(self._read(self._process))
        code = await in_time(self._connected, "no answer")
        granted = await in_time(self._granted, ()) if code == 0 else ()
        return ConnectAnswer(code=code, granted=granted)

    def _listening(self, filters: tuple[tuple[str, int], ...], identifier: int | None) -> list[str]:
        options, five = self.options, self.endpoint.version == 5
        arguments = ["-F", _FORMAT, "-k", str(options.keep_alive_s), "-q", str(max(qos for _, qos in filters))]
        for name, _ in filters:
            arguments += ["-t", self.topic(name)]
        if not options.clean:
            arguments += ["-c"]
        if five and options.session_s:
            arguments += ["-x", str(options.session_s)]
        if identifier is not None:
            arguments += ["-D", "subscribe", "subscription-identifier", str(identifier)]
        if (will := options.will) is not None:
            arguments += ["--will-topic", self.topic(will.topic), "--will-payload", will.payload.decode()]
            arguments += ["--will-qos", str(will.qos), *(["--will-retain"] if will.retain else [])]
            if will.delay_s:
                arguments += ["-D", "will", "will-delay-interval", str(will.delay_s)]
        return arguments

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        code: int | str | None = None
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            if line.startswith("HEARD\t"):
                self.hear(self._message(line.split("\t")))
            elif found := _PUBLISHED.search(line):
                self._duplicate = found[1] == "1"
            elif found := _CONNACK.search(line):
                self._settle(self._connected, int(found[1]))
            elif found := _SUBSCRIBED.match(line):
                self._settle(self._granted, tuple(int(code) for code in found[1].split(",")))
            elif found := _DISCONNECTED.search(line):
                code = int(found[1])
        await process.wait()
        self._settle(self._connected, "no answer")
        self._settle(self._granted, ())
        self.lost(code)

    @staticmethod
    def _settle(future: asyncio.Future[Any], value: Any) -> None:
        if not future.done():
            future.set_result(value)

    def _message(self, fields: list[str]) -> Heard:
        _, topic, qos, retain, payload, content_type, response, correlation, identifiers, expiry, user = fields
        return Heard(
            topic=topic,
            payload=bytes.fromhex(payload),
            qos=int(qos),
            retain=retain == "1",
            duplicate=self._duplicate,
            extras=Extras(
                user=tuple(
                    (name, value) for name, _, value in (pair.partition(":") for pair in user.split(" ")) if name
                ),
                content_type=content_type or None,
                response_topic=response.removeprefix(self.prefix) or None,
                correlation=correlation or None,
                expiry_s=int(expiry) if expiry else None,
                identifiers=tuple(int(number) for number in identifiers.replace(",", " ").split()),
            ),
        )

    async def publish(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        """One payload is taken whole; several are lines of one connection."""
        self._published += 1
        client_id = f"{self.options.client_id}-{self._published}"
        arguments = [*self._reach(client_id), "-t", self.topic(topic), "-q", str(qos), *self._properties(extras)]
        arguments += ["-r"] if retain else []
        arguments += ["-l"] if len(payloads) > 1 else ["-s"] if payloads[0] else ["-n"]
        process = await asyncio.create_subprocess_exec(
            "mosquitto_pub",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        given = b"".join(payload + b"\n" for payload in payloads) if len(payloads) > 1 else payloads[0]
        said, _ = await in_time(process.communicate(given), (b"", b""))
        if process.returncode is None:
            process.kill()
            await process.wait()
        codes = {int(mid): int(code) for mid, code in _ACKNOWLEDGED.findall(said.decode(errors="replace"))}
        if process.returncode != 0:
            return ["no answer"] * len(payloads)
        return [codes.get(mid, "no answer") if qos else None for mid in range(1, len(payloads) + 1)]

    def _properties(self, extras: Extras) -> list[str]:
        if self.endpoint.version != 5:
            return []
        named = {
            "content-type": extras.content_type,
            "response-topic": None if extras.response_topic is None else self.topic(extras.response_topic),
            "correlation-data": extras.correlation,
            "message-expiry-interval": extras.expiry_s,
            "topic-alias": extras.alias,
        }
        arguments = [
            part for name, value in named.items() if value is not None for part in ("-D", "publish", name, str(value))
        ]
        for name, value in extras.user:
            arguments += ["-D", "publish", "user-property", name, value]
        return arguments

    async def close(self) -> None:
        await self._end(signal.SIGTERM)

    async def vanish(self) -> None:
        await self._end(signal.SIGKILL)

    async def fall_silent(self) -> None:
        self._signal(signal.SIGSTOP)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None or self._reader is None:
            return
        for step in (number, signal.SIGCONT):
            self._signal(step)
        if await in_time(asyncio.shield(self._reader), False, 3.0) is False:
            self._signal(signal.SIGKILL)
            await self._reader

    def _signal(self, number: signal.Signals) -> None:
        """Not by the process object: that would collect the exit status before the event loop's watcher does."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)
