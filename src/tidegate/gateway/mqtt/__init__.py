"""MQTT without IO: bytes in, frames and values out."""
