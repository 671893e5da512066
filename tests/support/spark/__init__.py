"""Spark as tests use it: one session, a cluster, workers that wait."""
