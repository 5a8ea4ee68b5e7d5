"""Scenarios in virtual time: devices, a queue and its nodes around the production control loop and policies."""
