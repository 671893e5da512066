"""The logs of a broker: `local`, which it leads for good, and `replicated`, whose leaders a controller elects."""
