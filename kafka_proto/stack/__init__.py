"""The whole stack: coordinators on a replicated transaction log. See `kafka_proto.cluster` for the model.

Rooms: `state` (what a broker keeps), `broker`, `controller`, `properties`, `scenarios`. The decisions are those of
`kafka_proto.transactions` and `kafka_proto.replication`.
"""
