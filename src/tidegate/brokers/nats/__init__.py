"""The embedded brokers: NATS servers with MQTT and a log, how they are started, read and watched."""
