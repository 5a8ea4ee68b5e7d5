"""The method ``http``: a service that answers, one that is slow, one that is wrong, and what is remembered."""

import asyncio
import gzip
import json
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from certificates import Authority
from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.judging import Accepted, Identities, Presented, Refused
from tidegate.gateway.identity.posting import Posts
from tidegate.gateway.identity.settings import HttpSettings, IdentitySettings
from tidegate.model.errors import UserError
from tidegate.model.identity import Access, Application

JUDGED = Accepted | Refused


class Service:
    """Answers as it is told, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.status, self.body = 200, json.dumps({"name": "pump-1"}).encode()
        self.extra = b""  # headers, each with its end
        self.wait = asyncio.Event()
        self.wait.set()
        self.slow_s: Callable[[], float] = lambda: 0.0
        self.connected = 0
        self.url = "http://127.0.0.1:9/"  # nobody answers there

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                text = head.decode().lower()
                size = int(text.split("content-length: ")[1].split("\r\n")[0])
                self.headers.append(head.decode())
                self.asked.append(json.loads(await reader.readexactly(size)))
                await self.wait.wait()
                await asyncio.sleep(self.slow_s())
                head = b"HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n" % (self.status, self.extra, len(self.body))
                writer.write(head + self.body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connected -= 1
            writer.close()


class Rig:
    def __init__(self, service: Service, *, strict: bool = True, **settings: Any) -> None:
        self.service, self.now_s = service, 1_000.0
        chosen = HttpSettings(url=service.url, **settings)
        self.identities = Identities(
            IdentitySettings(methods=("http",), http=chosen),
            Access(applications=(Application(name="analytics"), Application(name="web", methods=("http",)))),
            lambda: self.now_s,
            strict=strict,
        )

    async def ask(self, user: str = "u", password: bytes | None = b"p") -> JUDGED:
        shown = Presented(user=user.encode(), password=password, client_id="c", address="192.0.2.1")
        found = self.identities.judge(shown, self.now_s)
        return found if found is not None else await self.identities.judge_slowly(shown)


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[Rig]:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/who"
    rig = Rig(service, **settings)
    try:
        yield rig
    finally:
        service.wait.set()
        await rig.identities.close()
        server.close()
        await asyncio.sleep(0)


def play(scenario: Callable[[Rig], Awaitable[None]], **settings: Any) -> None:
    async def whole() -> None:
        async with running(**settings) as rig:
            await scenario(rig)

    asyncio.run(whole())


def test_the_service_is_asked_once_and_its_answer_remembered() -> None:
    async def scenario(rig: Rig) -> None:
        found = await rig.ask()
        assert isinstance(found, Accepted)
        assert (found.name, found.method, found.expires_s) == ("pump-1", "http", None)
        assert found.rights.may_publish(b"telemetry/pump-1")
        assert rig.service.asked == [{"client_id": "c", "user": "u", "password": "p", "address": "192.0.2.1"}]
        assert isinstance(await rig.ask(), Accepted)
        assert len(rig.service.asked) == 1
        await rig.ask(password=b"q")
        assert len(rig.service.asked) == 2, "another password is another question"
        rig.now_s += 60
        await rig.ask()
        assert len(rig.service.asked) == 3

    play(scenario)


@pytest.mark.parametrize(
    ("status", "body", "refused"),
    [
        pytest.param(401, b"", verdicts.WRONG, id="refused"),
        pytest.param(403, b"no", verdicts.WRONG, id="forbidden"),
        pytest.param(404, b"", verdicts.NOBODY_KNOWS, id="not known, and nobody is left to ask"),
        pytest.param(500, b"", verdicts.SERVICE_AWAY, id="ill"),
        pytest.param(302, b"", verdicts.SERVICE_AWAY, id="elsewhere"),
        pytest.param(200, b"", verdicts.SERVICE_AWAY, id="silent"),
        pytest.param(200, b"[]", verdicts.SERVICE_AWAY, id="confused"),
        pytest.param(200, b'{"name": 7}', verdicts.SERVICE_AWAY, id="a name that is none"),
        pytest.param(200, b'{"name": "a/b"}', verdicts.NO_NAME, id="a name that is two levels"),
        pytest.param(200, b'{"name": "a", "publishes": ["#/a"]}', verdicts.SERVICE_AWAY, id="a pattern that is none"),
        pytest.param(200, b'{"name": "' + b"a" * 100_000, verdicts.SERVICE_AWAY, id="without end"),
        pytest.param(
            200,
            b'{"name": "a", "x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
            verdicts.SERVICE_AWAY,
            id="nested as deeply as fits",
        ),
        pytest.param(200, b'{"name": "\xff"}', verdicts.SERVICE_AWAY, id="no text"),
        pytest.param(200, '{"name": "a"}'.encode("utf-16"), verdicts.SERVICE_AWAY, id="another encoding"),
        pytest.param(200, b'{"name": "\\ud800"}', verdicts.SERVICE_AWAY, id="half a character"),
        pytest.param(200, b'{"name": "a", "expires_s": 1e999}', verdicts.SERVICE_AWAY, id="an end beyond all numbers"),
        pytest.param(200, b'{"name": "a", "expires_s": NaN}', verdicts.SERVICE_AWAY, id="an end that is no number"),
        pytest.param(
            200, b'{"name": "a", "expires_s": ' + b"9" * 5000 + b"}", verdicts.SERVICE_AWAY, id="an end of many digits"
        ),
        pytest.param(200, b'{"name": "analytics"}', verdicts.NOT_BY_THIS_METHOD, id="an application of another method"),
        pytest.param(
            200,
            b'{"name": "analytics", "publishes": ["#"]}',
            verdicts.NOT_BY_THIS_METHOD,
            id="an application of another method, with patterns",
        ),
    ],
)
def test_any_other_answer_lets_nobody_in(status: int, body: bytes, refused: Refused) -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.status, rig.service.body = status, body
        assert await rig.ask() == refused
        asked = len(rig.service.asked)
        assert await rig.ask() == refused
        is_remembered = refused in (
            verdicts.WRONG,
            verdicts.NOBODY_KNOWS,
            verdicts.NO_NAME,
            verdicts.NOT_BY_THIS_METHOD,
        )
        assert len(rig.service.asked) == (asked if is_remembered else asked + 1)

    play(scenario)


@pytest.mark.parametrize(
    ("extra", "body"),
    [
        pytest.param(b"Content-Encoding: gzip\r\n", gzip.compress(b'{"name": "a"}'), id="compressed"),
        pytest.param(b"Content-Encoding: gzip\r\n", gzip.compress(bytes(10_000_000)), id="small until it is unpacked"),
        pytest.param(b"Content-Encoding: gzip\r\n", b'{"name": "a"}', id="said to be compressed"),
        pytest.param(b"Content-Encoding: identity, br\r\n", b'{"name": "a"}', id="compressed after all"),
        pytest.param(b"Content-Encoding: \xff\r\n", b'{"name": "a"}', id="in a way that nobody knows"),
        pytest.param(b"Transfer-Encoding: rot13\r\n", b'{"name": "a"}', id="sent in a way that nobody knows"),
        pytest.param(b"X: " + b"x" * 200_000 + b"\r\n", b'{"name": "a"}', id="with a header without end"),
        pytest.param(b"Content-Length: 5\r\n", b'{"name": "a"}', id="of two lengths"),
        pytest.param(b"no header\r\n", b'{"name": "a"}', id="not HTTP"),
    ],
)
def test_what_nobody_asked_for_is_not_unpacked(extra: bytes, body: bytes) -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.extra, rig.service.body = extra, body
        assert await rig.ask() == verdicts.SERVICE_AWAY
        assert "accept-encoding: identity\r\n" in rig.service.headers[0].lower()
        rig.service.extra = b"Content-Encoding: Identity\r\n"
        rig.service.body = b'{"name": "a"}'
        assert isinstance(await rig.ask(), Accepted)

    play(scenario)


def test_an_answer_that_comes_byte_by_byte_is_given_up_in_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\nX: ")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        service = Service()
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        rig = Rig(service, timeout_s=0.1, requests_max=1)
        async with asyncio.timeout(2):
            for user in ("u", "v"):
                assert await rig.ask(user) == verdicts.SERVICE_AWAY
                await asyncio.sleep(0.2)
        await rig.identities.close()
        server.close()
        await asyncio.sleep(0.05)

    asyncio.run(scenario())


def test_a_refusal_is_forgotten_sooner_than_a_name() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.status = 401
        assert await rig.ask() == verdicts.WRONG
        rig.service.status = 200
        rig.now_s += 4
        assert await rig.ask() == verdicts.WRONG
        rig.now_s += 1
        assert isinstance(await rig.ask(), Accepted)

    play(scenario)


def test_the_service_may_say_what_a_client_may_do_and_until_when() -> None:
    async def scenario(rig: Rig) -> None:
        said = {"name": "web", "publishes": ["web/{device}"], "expires_s": rig.now_s + 10}
        rig.service.body = json.dumps(said).encode()
        found = await rig.ask()
        assert isinstance(found, Accepted)
        assert (found.is_application, found.expires_s, found.has_own_patterns) == (True, 1_010.0, True)
        assert found.rights.may_publish(b"web/web")
        assert not found.rights.may_subscribe(b"downlink/web"), "what it leaves out is refused"
        rig.identities.access_changed(None)
        kept = rig.identities.still_allowed(found, rig.now_s)
        assert isinstance(kept, Accepted)
        assert kept.rights.may_publish(b"web/web")
        rig.now_s += 10
        assert rig.identities.still_allowed(found, rig.now_s) == verdicts.EXPIRED
        await rig.ask()
        assert len(rig.service.asked) == 2, "nothing is remembered for longer than it counts"

    play(scenario)


def test_who_has_expired_when_the_service_answers_is_not_let_in_even_for_a_moment() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.body = json.dumps({"name": "pump-1", "expires_s": rig.now_s}).encode()
        assert await rig.ask() == verdicts.EXPIRED

    play(scenario)


def test_a_slow_service_is_given_up_and_more_than_enough_are_sent_away_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.wait.clear()
        tasks = [asyncio.create_task(rig.ask(f"u{number}")) for number in range(2)]
        await asyncio.sleep(0)
        begun_s = asyncio.get_running_loop().time()
        assert await rig.ask("another") == verdicts.TOO_MANY_CHECKS
        assert asyncio.get_running_loop().time() - begun_s < 0.1
        assert await asyncio.gather(*tasks) == [verdicts.SERVICE_AWAY] * 2
        await asyncio.sleep(0.2)
        rig.service.wait.set()
        assert isinstance(await rig.ask("another"), Accepted)

    play(scenario, timeout_s=0.3, requests_max=2)


def test_clients_that_leave_while_they_are_asked_about_take_no_place_with_them() -> None:
    chance = random.Random(7)

    async def scenario(rig: Rig) -> None:
        rig.service.slow_s = lambda: chance.random() * 0.02
        for number in range(500):
            task = asyncio.create_task(rig.ask(f"u{number}"))
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice((0, 0, 0.001, 0.004)))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.5)
        found = await asyncio.gather(*(rig.ask(f"v{number}") for number in range(8)))
        assert [type(one) for one in found] == [Accepted] * 8
        assert rig.service.connected <= 8

    play(scenario, timeout_s=0.3, requests_max=8)


def test_a_request_may_be_given_up_at_any_step_of_its_way() -> None:
    async def scenario(rig: Rig) -> None:
        posts = Posts(rig.service.url, httpx.create_ssl_context(trust_env=False), 0.5)
        given_up = 0
        for steps in range(200):
            for _ in range(2):  # over a new connection, and over one that was kept
                task = asyncio.create_task(posts.post(b"{}", {}))
                for _ in range(steps % 50):
                    await asyncio.sleep(0)
                task.cancel()
                given_up += isinstance((await asyncio.gather(task, return_exceptions=True))[0], BaseException)
            assert (await posts.post(b"{}", {})).content == rig.service.body
        assert given_up > 50
        await posts.close()
        await asyncio.sleep(0.05)
        assert rig.service.connected == 0

    play(scenario)


def test_an_answer_counts_although_its_client_has_left() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.wait.clear()
        impatient = asyncio.create_task(rig.ask())
        while not rig.service.asked:
            await asyncio.sleep(0.001)
        impatient.cancel()
        again = asyncio.create_task(rig.ask())
        await asyncio.sleep(0)
        assert await rig.ask("another") == verdicts.TOO_MANY_CHECKS
        rig.service.wait.set()
        assert isinstance(await again, Accepted)
        assert isinstance(await rig.ask(), Accepted)
        assert len(rig.service.asked) == 1

    play(scenario, requests_max=1)


def test_who_stops_while_a_request_is_under_way_does_not_wait_for_it() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.wait.clear()
        task = asyncio.create_task(rig.ask())
        while not rig.service.asked:
            await asyncio.sleep(0.001)
        async with asyncio.timeout(1):
            await rig.identities.close()
            assert await task == verdicts.SERVICE_AWAY

    play(scenario, timeout_s=30)


def test_a_service_that_is_away_lets_in_only_who_is_remembered() -> None:
    async def scenario(rig: Rig) -> None:
        assert isinstance(await rig.ask("known"), Accepted)
        rig.service.status = 503
        assert isinstance(await rig.ask("known"), Accepted)
        assert await rig.ask("new") == verdicts.SERVICE_AWAY
        rig.service.status = 200
        assert isinstance(await rig.ask("new"), Accepted)

    play(scenario)


def test_nobody_answers_at_the_address() -> None:
    async def scenario() -> None:
        rig = Rig(Service())
        assert await rig.ask() == verdicts.SERVICE_AWAY
        await rig.identities.close()

    asyncio.run(scenario())


def test_what_is_remembered_has_a_bound() -> None:
    async def scenario(rig: Rig) -> None:
        for number in range(4):
            await rig.ask(f"u{number}")
        await rig.ask("u3")
        assert len(rig.service.asked) == 4
        await rig.ask("u0")
        assert len(rig.service.asked) == 5

    play(scenario, cached_max=3)


def test_refusals_push_nobody_out_who_was_let_in() -> None:
    async def scenario(rig: Rig) -> None:
        assert isinstance(await rig.ask("known"), Accepted)
        for status in (401, 404):
            rig.service.status = status
            for number in range(10):
                assert isinstance(await rig.ask(f"{status} {number}"), Refused)
        rig.service.status = 503
        asked = len(rig.service.asked)
        assert isinstance(await rig.ask("known"), Accepted)
        assert await rig.ask("404 9") == verdicts.NOBODY_KNOWS
        assert len(rig.service.asked) == asked
        assert await rig.ask("401 0") == verdicts.SERVICE_AWAY, "refusals have a bound as well"

    play(scenario, cached_max=3)


def test_who_is_no_longer_let_in_is_refused_although_once_remembered() -> None:
    async def scenario(rig: Rig) -> None:
        assert isinstance(await rig.ask(), Accepted)
        rig.now_s += 60
        rig.service.status = 401
        assert [await rig.ask(), await rig.ask()] == [verdicts.WRONG] * 2
        assert len(rig.service.asked) == 2

    play(scenario)


def test_nothing_is_remembered_where_that_is_not_wanted() -> None:
    async def scenario(rig: Rig) -> None:
        for _ in range(2):
            assert isinstance(await rig.ask(), Accepted)
        rig.service.status = 401
        for _ in range(2):
            assert await rig.ask() == verdicts.WRONG
        assert len(rig.service.asked) == 4

    play(scenario, cache_s=0, refused_cache_s=0)


def test_a_password_that_is_no_text_is_wrong_and_nobody_is_asked() -> None:
    async def scenario(rig: Rig) -> None:
        assert await rig.ask(password=b"\xff") == verdicts.WRONG
        assert await rig.ask(password=None) != verdicts.WRONG
        assert [one["password"] for one in rig.service.asked] == [None]

    play(scenario)


def test_only_a_service_that_the_authority_vouches_for_is_asked_and_leaving_costs_no_place(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.sign("service"))

    async def scenario() -> None:
        service = Service()
        server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=tls)
        service.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/who"
        trusting, doubting = Rig(service, ca=str(authority.certificate)), Rig(service, ca=str(other.certificate))
        assert await doubting.ask() == verdicts.SERVICE_AWAY
        assert not service.asked
        for steps in range(60):
            task = asyncio.create_task(trusting.ask(f"{steps} steps"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        found = await asyncio.gather(*(trusting.ask(f"u{number}") for number in range(4)))
        assert [type(one) for one in found] == [Accepted] * 4
        await trusting.identities.close()
        await doubting.identities.close()
        server.close()
        await asyncio.sleep(0.05)
        assert service.connected == 0

    asyncio.run(scenario())


def test_a_service_that_never_begins_to_speak_keeps_no_connection() -> None:
    async def scenario(rig: Rig) -> None:
        connected = []

        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connected.append(True)
            while await reader.read(1000):
                pass
            connected.pop()
            writer.close()

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        rig.service.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        hung = Rig(rig.service, timeout_s=0.1, requests_max=4)
        for batch in range(3):
            found = await asyncio.gather(*(hung.ask(f"{batch} {number}") for number in range(4)))
            assert found == [verdicts.SERVICE_AWAY] * 4
            await asyncio.sleep(0.3)
        assert not connected
        await hung.identities.close()
        server.close()

    play(scenario)


def test_a_header_from_a_file_is_sent_along(tmp_path: Path) -> None:
    file = tmp_path / "header"
    file.write_text("Authorization: Bearer hush\n")

    async def scenario(rig: Rig) -> None:
        await rig.ask()
        assert "Authorization: Bearer hush\r\n" in rig.service.headers[0]
        file.write_text("X-Other: longer than before\n")
        looks = [rig.identities.look(rig.now_s, lambda _: True) for _ in range(2)]
        assert [one.everybody for one in looks] == [False, True]
        await rig.ask("v")
        assert "X-Other: longer than before\r\n" in rig.service.headers[1]

    play(scenario, header=str(file))


@pytest.mark.parametrize("content", [b"", b"no colon", b": x", b"A: b\nC: d", b"\xff: x"])
def test_a_header_that_is_none_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "header").write_bytes(content)
    with pytest.raises(UserError, match="not one line 'Name: value'"):
        Rig(Service(), header=str(tmp_path / "header"))


def test_a_header_that_is_none_when_a_process_is_replaced_turns_its_method_off(tmp_path: Path) -> None:
    file = tmp_path / "header"

    async def scenario(rig: Rig) -> None:
        assert await rig.ask() == verdicts.SERVICE_AWAY
        assert rig.service.asked == [], "nobody is asked without it"
        assert "told to come again" in rig.identities.look(rig.now_s, lambda _: True).sentences[0]
        file.write_text("Authorization: Bearer hush\n")
        looks = [rig.identities.look(rig.now_s, lambda _: True) for _ in range(2)]
        assert looks[-1].everybody
        await rig.ask()
        assert len(rig.service.asked) == 1

    play(scenario, header=str(file), strict=False)


def test_an_authority_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    for name in ("none.pem", "oops.pem"):
        (tmp_path / "oops.pem").write_text("oops")
        with pytest.raises(UserError, match=f"{name} cannot be used"):
            Rig(Service(), ca=str(tmp_path / name))
