"""Pure functions from Arrow to Arrow: payloads to readings, readings to means."""
