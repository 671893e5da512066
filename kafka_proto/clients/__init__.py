"""Kafka's clients: the versions of requests that a kind of client sends, the transactional producer as a pure value."""
