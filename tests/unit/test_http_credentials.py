"""What a request shows of who has sent it, and with which status somebody is refused."""

import base64

import pytest

from tidegate.gateway.http_credentials import ONLY_THE_BROKER_KNOWS, presented, status_of
from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.verdicts import REFUSALS, Certificate, Refused
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.shared.reasons import REASONS

PEER = Peer(address=("192.0.2.7", 50_000), certificate=Certificate(common_name="pump-1"))


def pair(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "user", "password"),
    [
        pytest.param(f"Basic {pair('pump-1:secret')}", b"pump-1", b"secret", id="a name and a password"),
        pytest.param(f"bAsIc   {pair('pump-1:secret')} ", b"pump-1", b"secret", id="in any case, with any space"),
        pytest.param(f"Basic {pair('pump-1:a:b')}", b"pump-1", b"a:b", id="a password with a colon"),
        pytest.param(f"Basic {pair('pümp:sécret')}", "pümp".encode(), "sécret".encode(), id="beyond ASCII"),
        pytest.param(f"Basic {pair(':secret')}", b"", b"secret", id="no name"),
        pytest.param("Bearer tg1.k.1.x", None, b"tg1.k.1.x", id="one word"),
        pytest.param("Bearer", None, b"", id="no word"),
        pytest.param(f"Basic {pair('pump-1')}", None, None, id="no pair"),
        pytest.param("Basic %%%", None, None, id="no base64"),
        pytest.param("Basic é", None, None, id="no base64 at all"),
        pytest.param("Digest x", None, None, id="another scheme"),
        pytest.param("", None, None, id="nothing"),
    ],
)
def test_what_a_header_says(header: str, user: bytes | None, password: bytes | None) -> None:
    shown = presented(header, "pump-9", PEER)
    assert (shown.user, shown.password) == (user, password)
    assert (shown.client_id, shown.address, shown.certificate) == ("pump-9", "192.0.2.7", PEER.certificate)
    assert "secret" not in repr(shown)


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        pytest.param(verdicts.NOBODY_KNOWS, 401, id="nobody knows it"),
        pytest.param(verdicts.WRONG, 401, id="its password is wrong"),
        pytest.param(verdicts.EXPIRED, 401, id="its proof has expired"),
        pytest.param(ONLY_THE_BROKER_KNOWS, 401, id="only the broker could know it"),
        pytest.param(verdicts.REVOKED, 403, id="it is revoked"),
        pytest.param(verdicts.NOT_BY_THIS_METHOD, 403, id="it is proven by the wrong method"),
        pytest.param(verdicts.NO_NAME, 403, id="its name is none"),
        pytest.param(verdicts.KEYS_NOT_KNOWN, 503, id="nobody can tell yet"),
        pytest.param(verdicts.SERVICE_AWAY, 503, id="the service is away"),
        pytest.param(verdicts.TOO_MANY_CHECKS, 503, id="too much is to be checked"),
    ],
)
def test_with_which_status_somebody_is_refused(refused: Refused, status: int) -> None:
    assert status_of(refused) == status


def test_every_refusal_is_one_sentence_and_has_a_counter() -> None:
    for refused in (*REFUSALS, ONLY_THE_BROKER_KNOWS):
        assert refused.reason in REASONS
        assert "\n" not in refused.sentence
        assert status_of(refused) in (401, 403, 429, 503)
