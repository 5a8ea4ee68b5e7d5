"""``tidegate bench fuzz``: hostile bytes for everything that reads MQTT."""
