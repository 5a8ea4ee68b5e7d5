"""What happens when in the demo, and the settings it runs with. The figures it shows are measured; none is here."""

import msgspec

# The node waits this long over each record and takes so many at a time: a small machine with a capacity of some
# hundred messages a second, and batches short enough to see it work.
NODE = {"COST_US_PER_RECORD": "1000", "ROWS_PER_BATCH_MAX": "500", "TRIGGER_MS": "0", "LEASE_S": "2"}


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One flood: how many devices, for how long. Both acts play the same one with the same seed."""

    calm_devices: int = 80
    flood_devices: int = 800
    interval_s: float = 0.5
    calm_s: float = 10.0
    pause_s: float = 3.0  # calm before the flood of act 2
    ramp_s: float = 2.0
    flood_s: float = 20.0
    after_s: float = 10.0
    seed: int = 7
    deaf: float = 0.0  # share of the devices that do not listen

    def pattern(self, calm_s: float) -> str:
        """Seconds and devices, linear between, as ``tidegate fleet --pattern`` takes it."""
        begin, full = calm_s, calm_s + self.ramp_s
        end, over = full + self.flood_s, full + self.flood_s + self.ramp_s
        points = [
            (0.0, self.calm_devices),
            (begin, self.calm_devices),
            (full, self.flood_devices),
            (end, self.flood_devices),
            (over, self.calm_devices),
            (over + self.after_s, self.calm_devices),
        ]
        return ",".join(f"{second:g}:{devices}" for second, devices in points)

    def flood(self, calm_s: float) -> tuple[float, float]:
        """From the first additional device to the last moment with all of them, in seconds after the fleet's start."""
        return calm_s, calm_s + self.ramp_s + self.flood_s

    def seconds(self, calm_s: float) -> float:
        return calm_s + 2 * self.ramp_s + self.flood_s + self.after_s


# For a chain that grows. What a node takes is bounded by how many records it takes at a time, and how often: so its
# batches stay short, two nodes on one small machine take twice as much, and the flood is more than both of them take.
GROWING_NODE = {
    "MASTER": "local[1]",
    "COST_US_PER_RECORD": "500",
    "ROWS_PER_BATCH_MAX": "60",
    "TRIGGER_MS": "300",
    "LEASE_S": "2",
}
GROWING_CONTROLLER = {
    "POLICY": "adaptive",
    "OPTIONS": "{standing_s = 0.15, utilisation = 0.9, provisioning = {start_s = 15.0, down_after_s = 5.0}}",
}
GROWING = Script(calm_devices=20, flood_devices=220, flood_s=60.0, after_s=25.0)
GROWING_NODES_MAX = 2


def slowness(*, growing: bool = False) -> str:
    """What a verdict has to say beside its figures: they are those of a node that is slowed down."""
    cost_ms = int((GROWING_NODE if growing else NODE)["COST_US_PER_RECORD"]) / 1000
    return (
        f"The processing node is slow on purpose: it waits {cost_ms:g} ms over each record, "
        "so that devices on one small machine can flood it."
    )


def environment(policy: str = "gotin", *, growing: bool = False) -> dict[str, str]:
    """Settings for the parts that the demo starts, as the environment hands them over: the controller's are those that
    are shipped, but for the policy."""
    sections = {"NODE": NODE, "CONTROLLER": {"POLICY": policy}}
    if growing:
        sections = {"NODE": GROWING_NODE, "CONTROLLER": GROWING_CONTROLLER}
    return {f"TIDEGATE_{name}__{key}": value for name, keys in sections.items() for key, value in keys.items()}
