"""The view as Prometheus' text."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidegate.model.view import View
from tidegate.web.metrics.control import of_control, of_controller, of_sample
from tidegate.web.metrics.devices import of_devices
from tidegate.web.metrics.gateways import of_classes, of_gateways, of_holds, of_processes
from tidegate.web.metrics.ledger import of_ledger
from tidegate.web.metrics.pipeline import of_brokers, of_nodes, of_slices
from tidegate.web.metrics.tables import of_maintenance, of_tables

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(view: View, now_s: float) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ViewCollector(lambda: view, lambda: now_s))
    return generate_latest(registry)


class ViewCollector(Collector):
    def __init__(self, view: Callable[[], View], now_s: Callable[[], float]) -> None:
        self._view = view
        self._now_s = now_s

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        view = self._view()
        yield from of_controller(view, self._now_s())
        if view.now is not None:
            yield from of_sample(view.now)
            yield from of_control(view.now, view.chain)
        yield from of_devices(view.identity)
        yield from of_gateways(view.chain)
        yield from of_holds(view.chain)
        yield from of_processes(view.chain)
        yield from of_classes(view.chain)
        yield from of_brokers(view.chain)
        yield from of_nodes(view.chain)
        yield from of_slices(view.chain)
        if view.chain.tables is not None:
            yield from of_tables(view.chain.tables)
            yield from of_maintenance(view.chain.tables, self._now_s())
        yield from of_ledger(view, self._now_s())
