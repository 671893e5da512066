"""Faults as lines on stdin of a cluster that is served: `delay EndTxn` begins one, `end 1` ends it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from harness.model import Refusal
from kafka_proto.gateway.inputs import Settings, TimedFault
from kafka_proto.gateway.plans import read_plan, written
from kafka_proto.gateway.server import Server

END = re.compile(r"end +([0-9]{1,9})")


class TypedFaults:
    """Takes the lines; what cannot be is said on stderr, and the cluster goes on."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self._settings, self._seed = settings, seed

    def take(self, server: Server, line: str) -> Iterable[TimedFault]:
        """End a fault, or return those that the line begins."""
        text = line.strip()
        if not text:
            return ()
        self._seed += 1
        try:
            ended = END.fullmatch(text)
            if ended is None:
                return read_plan(text, self._seed, self._settings)
            if not 1 <= int(ended[1]) <= server.begun:
                raise Refusal(f"there is no fault {ended[1]}; {server.begun} began so far")
            server.end(int(ended[1]))
        except Refusal as refused:
            print(f"kafka-proto: {refused}", file=sys.stderr, flush=True)
        return ()

    def begun(self, number: int, timed: TimedFault) -> None:
        """Say by which number a fault is ended."""
        print(f"fault {number}: {written(timed)}", file=sys.stderr, flush=True)
