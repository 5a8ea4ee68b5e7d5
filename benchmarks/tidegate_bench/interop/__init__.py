"""``tidegate bench interop``: real MQTT clients do the same things with a broker directly and through the gateway."""
