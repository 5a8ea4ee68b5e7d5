"""What a controller may see, made up at random: a chain with one node and three classes of devices."""

import msgspec
from hypothesis import strategies as st

from tidegate.model.classes import DeviceClass
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation

CLASSES = (
    DeviceClass(name="alarm", topics=("alarm/#",), never_delay=True),
    DeviceClass(name="door", topics=("door/#",), event_driven=True),
    DeviceClass(name="telemetry", topics=("#",)),
)


class Look(msgspec.Struct):
    """What changed since the last look."""

    passed_s: float
    arrived: int
    committed: int
    head_age_s: float
    devices: dict[str, int]


looks = st.lists(
    st.builds(
        Look,
        passed_s=st.sampled_from([0.5, 0.5, 0.5, 5.0]),
        arrived=st.integers(0, 2_000),
        committed=st.integers(0, 500),
        head_age_s=st.floats(0, 60),
        devices=st.fixed_dictionaries({one.name: st.integers(0, 500) for one in CLASSES}),
    ),
    min_size=12,
    max_size=40,
)


def observations(seen: list[Look]) -> list[Observation]:
    at_s, arrived, committed, busy_s, found = 1_000.0, 0, 0, 0.0, []
    for look in seen:
        at_s += look.passed_s
        arrived += look.arrived
        committed = min(arrived, committed + look.committed)
        busy_s += look.passed_s
        classes = {name: ClassState(devices=count, publishes=arrived) for name, count in look.devices.items()}
        gateway = GatewayState(
            name="g",
            address="h:1",
            measured_at_s=at_s,
            connections=sum(look.devices.values()),
            publishes=arrived,
            acknowledged=arrived,
            advised=0,
            classes=classes,
        )
        node = NodeState(
            name="node-1", alive=True, slices=(0,), rows=committed, limit_rows=float(committed), limit_s=busy_s
        )
        found.append(
            Observation(
                at_s=at_s,
                arrived=arrived,
                committed=committed,
                head_age_s=look.head_age_s,
                devices=gateway.connections,
                gateways=(gateway,),
                nodes=(node,),
            )
        )
    return found
