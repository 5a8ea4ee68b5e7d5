"""What a device uses to send readings, and simulated fleets of devices."""
