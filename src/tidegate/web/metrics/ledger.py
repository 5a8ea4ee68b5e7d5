"""The ledger: what gateways noted, and what became of it."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tidegate.model.view import View
from tidegate.web.metrics.families import filled


def of_ledger(view: View, now_s: float) -> Iterator[Metric]:
    """What gateways noted, and what became of it over the hours that the check tells of."""
    label = ["gateway"]
    noted = CounterMetricFamily("tidegate_ledger_noted", "Acknowledged readings noted by identity.", labels=label)
    nameless = CounterMetricFamily("tidegate_ledger_nameless", "Acknowledged without an identity.", labels=label)
    unwatched = CounterMetricFamily(
        "tidegate_ledger_unwatched", "Acknowledged readings that this gateway could not report.", labels=label
    )
    for gateway in view.chain.gateways:
        noted.add_metric([gateway.name], gateway.ledger.noted)
        nameless.add_metric([gateway.name], gateway.ledger.nameless)
        unwatched.add_metric([gateway.name], gateway.ledger.unwatched)
    yield from filled(noted, nameless, unwatched)
    state = view.completeness
    if state is None:
        return
    readings = GaugeMetricFamily(
        "tidegate_ledger_readings",
        "Readings acknowledged in the last 48 hours, by what became of them.",
        labels=["state"],
    )
    for name in ("acknowledged", "stored", "rejected", "missing", "waiting", "unwatched"):
        readings.add_metric([name], sum(getattr(hour, name) for hour in state.hours))
    yield readings
    yield GaugeMetricFamily(
        "tidegate_ledger_check_age_seconds", "How long ago the tables were last compared.", value=now_s - state.at_s
    )
    yield CounterMetricFamily(
        "tidegate_ledger_reports_lost",
        "Gateways' reports that were gone before they were read.",
        value=state.reports_lost,
    )
