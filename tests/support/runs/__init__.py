"""Runs of the project's models: made, held against specs, recorded, edited."""
