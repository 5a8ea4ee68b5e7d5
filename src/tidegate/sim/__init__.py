"""Scenarios in virtual time: devices, a queue and its instances around the production control loop and policies."""
