"""From running servers to an installation that may take readings."""

from tidegate.brokers.nats.ingest import open_for_traffic
from tidegate.bus.knowledge import Knowledge
from tidegate.bus.wire import Wire
from tidegate.model.installation import Installation


def open_installation(installation: Installation) -> None:
    """Make the knowledge bucket and the slices, and return when every source is active."""
    with Wire(installation.control_urls, name="tidegate-opening") as control:
        Knowledge(control).create_bucket()
    with Wire(installation.data_urls, name="tidegate-opening") as data:
        open_for_traffic(data, installation)
