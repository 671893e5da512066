"""Searches that others are held against, and what is searched."""
