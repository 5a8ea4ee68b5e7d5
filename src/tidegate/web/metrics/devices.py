"""Devices as a whole: how many are registered, and how many are refused altogether."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from tidegate.model.view import IdentityState


def of_devices(identity: IdentityState) -> Iterator[Metric]:
    if identity.registered is not None:
        yield GaugeMetricFamily("tidegate_devices_registered", "Devices in the register.", value=identity.registered)
    if identity.revoked is not None:
        yield GaugeMetricFamily("tidegate_devices_revoked", "Names that are refused.", value=identity.revoked)
