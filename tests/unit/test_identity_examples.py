"""What the page on identity says and the examples show is so."""

import asyncio
import base64
import importlib.util
import os
import re
import subprocess
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.judging import Accepted, Identities, Presented, Refused
from tidegate.gateway.identity.settings import HttpSettings, IdentitySettings
from tidegate.model.credentials import Key, password_of
from tidegate.settings.tree import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "identity.md").read_text()
EXAMPLES = ROOT / "examples" / "identity"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.name)
def test_an_example_can_be_loaded(file: Path) -> None:
    assert load(file, {}).identity.methods[0] == "derived"
    assert f"examples/identity/{file.name}" in PAGE


def test_a_factory_makes_the_same_password_as_tidegate() -> None:
    (block,) = re.findall(r"^    (printf 'tidegate device.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    key = Key(id="k1", secret=bytes(range(7, 39)))
    given = {"KEY_ID": "k1", "GENERATION": "3", "NAME": "pump ä", "SECRET": base64.b64encode(key.secret).decode()}
    done = subprocess.run(
        ["bash", "-c", block], env={**os.environ, **given}, capture_output=True, text=True, check=True
    )
    assert f"tg1.k1.3.{done.stdout.strip()}" == password_of(key, "pump ä", 3)


def test_the_service_of_the_example_knows_who_is_who() -> None:
    spec = importlib.util.spec_from_file_location("example_service", EXAMPLES / "service.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    server = ThreadingHTTPServer(("127.0.0.1", 0), example.Who)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def ask() -> list[Accepted | Refused]:
        http = HttpSettings(url=f"http://127.0.0.1:{server.server_port}/who")
        judges = Identities(IdentitySettings(methods=("http",), http=http), None, lambda: 0.0)
        pairs = ((b"pump-1", b"one-secret"), (b"lab", b"another-secret"), (b"lab", b"wrong"), (b"nobody", b"x"))
        found = [await judges.judge_slowly(Presented(user=user, password=password)) for user, password in pairs]
        await judges.close()
        return found

    try:
        pump, lab, wrong, nobody = asyncio.run(ask())
    finally:
        server.shutdown()
        server.server_close()
    assert isinstance(pump, Accepted)
    assert pump.rights.may_publish(b"telemetry/pump-1")
    assert isinstance(lab, Accepted)
    assert lab.rights.may_publish(b"lab/x")
    assert (wrong, nobody) == (verdicts.WRONG, verdicts.NOBODY_KNOWS)
