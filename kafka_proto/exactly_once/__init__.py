"""The whole transaction protocol as actors: producers, brokers with all their roles, consumers, on a faulty network.

Rooms: `messages`, `client` and `reader` (the actors of producers and consumers), `broker` with `coordinating` and
`serving`, `placement` (who leads what), `ghosts` (what histories know and no protocol code reads), `properties`,
`models`, `scenarios`. The decisions are those of `kafka_proto.{producer,consumer,coordinator,leader,group}`.
"""
