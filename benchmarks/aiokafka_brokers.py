"""A plugin of pytest: aiokafka's tests get the broker at SUITE_BROKER where they would start one with Docker.

`client_suites.py` loads it. It sets the fixtures by name that are about containers; the tests stay as they are.
"""

from __future__ import annotations

import os
import types
from typing import Any

import pytest

NONE_HERE = ("docker", "ssl_folder", "acl_manager", "kerberos_utils", "kafka_config")
"""What TLS and SASL need."""


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object:
    """Give a fixture of containers its value, or leave it to pytest."""
    host, _, port = os.environ["SUITE_BROKER"].rpartition(":")
    server = types.SimpleNamespace(
        host=host, port=int(port), hosts=[f"{host}:{port}"], ssl_port=0, sasl_plain_port=0, sasl_ssl_port=0)
    known = {**dict.fromkeys(NONE_HERE), "kafka_server": server,
             "kafka_image": request.config.getoption("--docker-image", None)}
    if fixturedef.argname not in known:
        return None
    value = known[fixturedef.argname]
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value if value is not None else ()
