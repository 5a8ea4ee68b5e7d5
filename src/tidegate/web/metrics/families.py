"""What families of metrics have in common."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


def add_each(family: GaugeMetricFamily | CounterMetricFamily, name: str, counts: Mapping[str, int]) -> None:
    """A sample per reason, or per version: whatever the family's second label is."""
    for kind, count in counts.items():
        family.add_metric([name, kind], count)


def filled(*families: Metric) -> Iterator[Metric]:
    """Those that have a sample: nothing is said of what is not known."""
    return (family for family in families if family.samples)
