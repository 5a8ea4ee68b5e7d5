"""A gateway whose reports do not reach the journal is named."""

from types import SimpleNamespace

import pytest

from tidegate.bus import journals
from tidegate.bus.documents import LEDGER
from tidegate.bus.key_value import Answer
from tidegate.controller.gateways_seen import GatewaysSeen
from tidegate.controller.sensors import Sensors
from tidegate.model.errors import BrokerUnavailableError, TooLargeError
from tidegate.model.ledger import LedgerCounts
from tidegate.model.observations import GatewayState


@pytest.mark.parametrize(("unreported_s", "alarms"), [(15, 0), (61, 1)])
def test_a_gateway_that_does_not_report_for_a_minute_is_an_alarm(unreported_s: int, alarms: int) -> None:
    state = GatewayState(
        name="g-7",
        address="",
        measured_at_s=0,
        connections=0,
        publishes=0,
        acknowledged=0,
        advised=0,
        ledger=LedgerCounts(noted=5, reported=3, unreported_s=unreported_s),
    )
    sensors = object.__new__(Sensors)
    sensors._alarms, sensors._gateways = [], GatewaysSeen()
    sensors._bus = SimpleNamespace(names=lambda _document: ["g-7"])  # type: ignore[assignment]
    sensors._readable = lambda _document, _name: state  # type: ignore[method-assign, assignment, return-value]
    assert sensors._read_gateways() == (state,)
    assert len([alarm for alarm in sensors._alarms if "Gateway g-7 has not reported" in alarm]) == alarms


@pytest.mark.parametrize(("code", "error"), [(10054, TooLargeError), (10077, BrokerUnavailableError)])
def test_a_record_that_a_journal_never_takes_is_told_from_one_that_it_may(code: int, error: type[Exception]) -> None:
    answer = Answer({}, b'{"error":{"code":400,"err_code":%d,"description":"no"}}' % code)
    with pytest.raises(BrokerUnavailableError) as raised:
        journals.appended(LEDGER, answer)
    assert type(raised.value) is error
