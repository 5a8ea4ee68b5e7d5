"""MQTT 3.1, 3.1.1 and 5 without IO: packets.py is its door; client.py is the little that a device needs of it."""
