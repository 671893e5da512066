"""Schedules found in simulation, played against a real broker: a client from outside, and a proxy that is late."""
