"""Histories of logs for tests: written by hand in lines, or made by a small queue that can be wrong."""
