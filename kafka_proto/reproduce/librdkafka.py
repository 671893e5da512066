"""The program that makes librdkafka's calls: a request per line comes in, and its answer goes out once it returned.

It is a process of its own: librdkafka's threads end with it, whatever they wait for, and a crash in them is told in a
sentence. Run by `playing`.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka

CALL_SECONDS = 30.0
"""That a call may take at most."""
SILENCE = logging.Logger("librdkafka", level=logging.CRITICAL + 1)
"""For librdkafka's own messages, which speak of connections that are given up on purpose."""

PRODUCERS: dict[str, Any] = {}


def _init(producer: str, settings: dict[str, Any]) -> None:
    PRODUCERS[producer] = confluent_kafka.Producer({**settings, "logger": SILENCE})
    PRODUCERS[producer].init_transactions(CALL_SECONDS)


def _send(producer: str, topic: str, partition: int, record: str) -> None:
    PRODUCERS[producer].produce(topic, record.encode(), partition=partition)


CALLS: dict[str, Callable[..., object]] = {
    "InitTransactions": _init,
    "BeginTransaction": lambda producer: PRODUCERS[producer].begin_transaction(),
    "Send": _send,
    "Flush": lambda producer: PRODUCERS[producer].flush(CALL_SECONDS),
    "CommitTransaction": lambda producer: PRODUCERS[producer].commit_transaction(CALL_SECONDS),
    "AbortTransaction": lambda producer: PRODUCERS[producer].abort_transaction(CALL_SECONDS),
}


def _call(number: int, action: str, arguments: dict[str, Any]) -> None:
    heard = ""
    try:
        CALLS[action](**arguments)
    except confluent_kafka.KafkaException as error:
        heard = error.args[0].str()
    except Exception as error:  # what is wrong with a call is told as what a broker says
        heard = f"{type(error).__name__}: {error}"
    # One write of less than PIPE_BUF bytes: lines of several threads do not mix.
    os.write(sys.stdout.fileno(), json.dumps([number, heard]).encode() + b"\n")


def main() -> None:
    """Make calls until no more are asked for. Ctrl-C is the other's affair, which ends this program then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        threading.Thread(target=_call, args=json.loads(line), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    main()
