"""What coordinators and clients decide: pure functions, which the specs compose.

A decision is the whole guard, in the order of the specs and of Kafka's own checks, over explicit arguments. It returns
an outcome. Nothing here knows where the arguments come from or when the effects land; which of the decisions make up a
version is said in `kafka_proto.transactions.versions`.
"""
