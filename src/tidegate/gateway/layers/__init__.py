"""What lies between a device's socket and MQTT: PROXY protocol, TLS, WebSocket. Bytes in, bytes out, no IO."""
