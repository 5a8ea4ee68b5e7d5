"""Device classes: who goes first when there is not enough for all.

A class is named by the topics its devices publish on. A device belongs to one class: that of its first publish.
"""

from typing import Annotated

import msgspec

ClassName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]


class DeviceClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``weight`` says how much of a scarce capacity a device of this class gets, against one of another class."""

    name: ClassName
    topics: tuple[str, ...] = ()  # MQTT filters; the first class that matches counts
    weight: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    never_delay: bool = False  # its devices are never asked to send less often
    event_driven: bool = False  # its devices send on change: they widen their dead band instead of an interval
    # How often one of its devices sends that nobody advises, and what one of its messages costs against the others';
    # None is the installation's default, and a cost that is learnt.
    default_interval_s: Annotated[float, msgspec.Meta(ge=0.001, le=3600)] | None = None
    cost: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None


TELEMETRY = DeviceClass(name="telemetry", topics=("#",))
DEFAULT_CLASSES = (
    DeviceClass(name="alarm", topics=("telemetry/+/alarm/#",), weight=16.0),
    DeviceClass(name="command", topics=("telemetry/+/command/#",), weight=4.0),
    TELEMETRY,
)
