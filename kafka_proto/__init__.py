"""Executable prototypes of Kafka's protocols. Pure and frozen: nothing here imports a driver."""
