"""An installation that nobody can reach: for devices that are looked at and never connect."""

from tidegate.model.installation import Installation

NOWHERE = Installation(
    control_urls=(),
    data_urls=(),
    mqtt_addresses=(("127.0.0.1", 1),),
    monitor_urls=(),
    mqtt_user="u",
    mqtt_password="p",
    slices=1,
    tables="",
)
