"""Kafka's wire protocol: what is between a TCP connection and a request as a value. It needs the extra `gateway`.

`connection` is bytes in and out, without I/O; it is made of `frames` (where a message ends), `codec` (its fields, by
kio's schemas) and `offer` (which APIs and versions there are, by release). `records` reads and writes record batches.
"""
