"""Brokers at rest, and members of groups, that tests ask in this process."""
