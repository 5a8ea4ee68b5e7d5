"""How the broker writes an MQTT topic as a NATS subject, and back.

A level is a token. What a token cannot hold is written with slashes, which a level has none of: ``//`` is a dot, and a
``/`` alone is an empty level.

    telemetry/a.b  ▶ telemetry.a//b        telemetry/a//b ▶ telemetry.a./.b        telemetry/a/ ▶ telemetry.a./
"""

import re

MQTT_SUBJECTS = "$MQTT.msgs."  # what all of them begin with in the broker's own stream
_WRITTEN = re.compile(r"//|/\.|[/.]")
_MEANT = {"//": ".", "/.": "/", "/": "", ".": "/"}


def topic_of(subject: str) -> str:
    if "/" not in subject:
        return subject.replace(".", "/")
    return _WRITTEN.sub(lambda found: _MEANT[found[0]], subject)
