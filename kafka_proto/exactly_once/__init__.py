"""The whole transaction protocol as actors: producers, brokers with all their roles, consumers, on a faulty network.

Rooms: `messages`, `client`, `idempotent_client` and `reader` (the actors of producers and consumers), the roles of
brokers with their `composition`, `placement` (who leads what), `ghosts` (what histories know and no protocol code
reads), `properties`, `models`, `scenarios`. The decisions are those of
`kafka_proto.{producer,consumer,coordinator,leader,group}`.
"""
