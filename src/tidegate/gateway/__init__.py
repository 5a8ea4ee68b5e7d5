"""The MQTT data plane: routes connections to brokers, passes frames both ways, puts advice behind acknowledgements."""
