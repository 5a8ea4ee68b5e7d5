"""Send one reading with any MQTT client: here paho, with the password of a device of a running `tidegate up`.

`tidegate device add pump-7` says where it connects, and its password:

    DEVICE_PASSWORD=... python examples/send_a_reading.py 127.0.0.1:1883 pump-7
"""

import json
import os
import sys
import time

import paho.mqtt.client as mqtt

address, name = sys.argv[1:]
host, port = address.split(":")
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
client.username_pw_set(name, os.environ["DEVICE_PASSWORD"])
client.connect(host, int(port))
client.loop_start()
reading = {"boot": int(time.time()), "seq": 1, "time": time.time(), "value": 21.5}
sent = client.publish(f"telemetry/{name}", json.dumps(reading), qos=1)
sent.wait_for_publish(timeout=10)
print("acknowledged:", sent.is_published())  # noqa: T201
client.disconnect()
client.loop_stop()
