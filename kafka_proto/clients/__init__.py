"""Clients of brokers: what producers and consumers decide, as pure values, and the actors that ask brokers for them."""
