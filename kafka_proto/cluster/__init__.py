"""Whole transactions on a faulty network: clients, brokers with all their roles, and who elects leaders of their logs.

`composition` says what a broker is made of, `models` the models `exactly-once/*`; `properties` and `plain_records` what
must hold, `logs` where they see it; `scenarios` and `tours`. Brokers are those of `kafka_proto.broker`, clients are
those of `kafka_proto.clients`.
"""
