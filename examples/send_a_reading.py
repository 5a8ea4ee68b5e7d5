"""Send one reading with any MQTT client: here paho, over the credentials of a running `tidegate up`."""

import json
import time
from pathlib import Path

import paho.mqtt.client as mqtt

from tidegate.model.installation import Installation

here = Installation.load(Path(".tidegate"))
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="example", clean_session=False)
client.username_pw_set(here.mqtt_user, here.mqtt_password)
client.connect(*here.mqtt_addresses[0])
client.loop_start()
reading = {"boot": int(time.time()), "seq": 1, "time": time.time(), "value": 21.5}
client.publish("telemetry/example", json.dumps(reading), qos=1).wait_for_publish(timeout=10)
client.disconnect()
client.loop_stop()
