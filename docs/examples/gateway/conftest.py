"""The one line that makes the fixture `kafka_cluster` known."""

pytest_plugins = ["kafka_proto.gateway.pytest_plugin"]
