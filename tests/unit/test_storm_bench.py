"""The benchmark of a broker that is bounced, and of connecting: their arithmetic on figures to check by hand, and their
clients over TLS."""

import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tidegate.mqtt.client import encode_connect
from tidegate_bench.rig import connecting
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.clients import tls_context
from tidegate_bench.storm import bounce
from tidegate_bench.storm import checks as storm_checks
from tidegate_bench.storm.clients import ACCEPTED, Storm
from tidegate_bench.storm.run import thinned


def storm_rows(alone_s: list[float], back_s: list[float], peaks_kib: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"part": storm_checks.SERIES, "at_s": 0.0}]
    spent = {"broker_user_s": 0.3, "broker_system_s": 0.1, "idle_s": 0.2}
    for number, (alone, back, peak) in enumerate(zip(alone_s, back_s, peaks_kib, strict=True)):
        whose = {"repetition": number, "clients": 2_000, **spent}
        memory = {"rss_kib_before": 50_000, "rss_kib_peak": peak}
        rows += [
            {"part": storm_checks.DIRECT, "seconds": 0.5, **whose},
            {"part": storm_checks.ALONE, "all_back_s": alone, **whose},
            {"part": storm_checks.STORM, "all_back_s": back, "gateway_user_s": 0.6, **memory, **whose},
            {"part": storm_checks.STORM_TLS, "all_back_s": 3 * back, **memory, **whose},
        ]
    return rows


@pytest.mark.parametrize(
    ("alone_s", "back_s", "peaks_kib", "values", "holds"),
    [
        pytest.param([1.0] * 3, [1.6] * 3, [178_000] * 3, [1.6, 64.0], [True, True], id="just so"),
        pytest.param(
            [1.0] * 3, [1.7, 1.8, 0.3], [60_000, 180_000, 190_000], [1.7, 65.0], [False, False], id="too much"
        ),
        pytest.param(
            [1.0] * 3, [1.2, 120.0, 1.2], [60_000, 60_000, 900_000], [1.2, 5.0], [True, True], id="one bad repetition"
        ),
        pytest.param([1.0, 9.0, 2.0], [1.5, 13.5, 3.0], [60_000] * 3, [1.5, 5.0], [True, True], id="slow moments"),
    ],
)
def test_storm_checks_are_medians_of_what_a_repetition_took_with_and_without_a_gateway(
    alone_s: list[float], back_s: list[float], peaks_kib: list[int], values: list[float], holds: list[bool]
) -> None:
    found = storm_checks.checks(storm_rows(alone_s, back_s, peaks_kib))
    assert [check.value for check in found] == values
    assert [check.holds for check in found] == holds


def test_the_storm_tells_its_other_ratios_and_where_the_time_goes() -> None:
    rows = storm_rows([1.0] * 3, [1.5] * 3, [60_000] * 3)
    found = list(storm_checks.summaries(rows))
    medians = {row["check"]: row["median"] for row in found if row["part"] == storm_checks.SPREAD}
    assert medians == {"all_back_vs_bounce": 1.5, "all_back_tls_vs_bounce": 4.5, "all_back_factor": 3.0}
    alone, through, _ = (row for row in found if row["part"] == storm_checks.TIME)
    assert (alone["broker_us_per_client"], alone["gateway_us_per_client"]) == (200, 0)
    assert through["gateway_us_per_client"] == 300
    assert through["processors_busy"] == pytest.approx(1.0 / (1.5 * len(os.sched_getaffinity(0))), abs=0.01)


def test_the_course_of_a_bounce_is_told_by_its_moments() -> None:
    found = bounce.course([0.5 + number / 1_000 for number in range(1_000)])
    assert (found["first_s"], found["half_s"], found["most_s"]) == (0.5, 1.0, 1.4)
    assert found["connacks_per_s"] == 1_000
    assert bounce.course([]) == {}


def connecting_rows(**costs: tuple[float, ...]) -> list[dict[str, Any]]:
    return [
        {"part": connecting.PART, "pair": pair, "through": name, "cpu_s_per_connect": cost}
        for name, each in costs.items()
        for pair, cost in enumerate(each)
    ]


def test_connecting_is_compared_within_a_pair() -> None:
    rows = [*connecting_rows(ours=(3e-4, 9e-4, 4e-4), other=(2e-4, 6e-4, 1e-4)), {"part": "bounce"}]
    ratio = connecting.connect_cost_ratio(rows, "ours", "other")
    assert ratio == {"connect_cost_ratio": 1.5, "connect_cost_ratio_min": 1.5, "connect_cost_ratio_max": 4.0}
    assert connecting.connect_cost_us(rows, "ours") == 400.0


def test_a_series_keeps_its_steps_and_its_end() -> None:
    looks = [{"at_s": number / 20, "connected": number} for number in range(38)]
    kept = [look["connected"] for look in thinned(looks, 0.25)]
    assert kept == [0, 5, 10, 15, 20, 25, 30, 35, 37]
    assert [look["connected"] for look in thinned(looks[:1], 0.25)] == [0]


def accept_over_tls(listener: socket.socket, context: ssl.SSLContext, cut: int, count: int) -> list[socket.socket]:
    """The first are cut off before their handshake, the others get their CONNACK."""
    opened = []
    for number in range(cut + count):
        accepted, _ = listener.accept()
        if number < cut:
            accepted.close()
            continue
        encrypted = context.wrap_socket(accepted, server_side=True)
        assert encrypted.recv(4_096)[0] == 0x10
        encrypted.sendall(ACCEPTED)
        opened.append(encrypted)
    return opened


def test_a_storm_over_tls_tries_again_when_it_is_cut_off_before_its_handshake(tmp_path: Path) -> None:
    made = Certificate.made(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener, ThreadPoolExecutor(1) as serving:
        accepted = serving.submit(accept_over_tls, listener, context, 2, 5)
        connects = [encode_connect(f"c{number}") for number in range(5)]
        storming = Storm(listener.getsockname(), connects, tls_context(str(made.certificate)))
        for _ in range(1_000):
            storming.turn()
            if storming.connected == 5:
                break
        for opened in accepted.result():
            opened.close()
        storming.close()
    assert storming.counts == {"attempts": 7, "refused": 0, "unanswered": 2, "lost": 0}
    assert len(storming.accepted_s) == 5
