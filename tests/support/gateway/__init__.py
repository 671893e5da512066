"""Clients of the gateway: real ones, scripted ones, drawn ones, bytes."""
