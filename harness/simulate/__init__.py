"""One run at a time: strategies, virtual time, the plain and the trio runtime, replay, shrinking, the hunt."""
