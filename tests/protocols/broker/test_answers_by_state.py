"""What a coordinator answers to each request in each state: one table a version, to be read beside Kafka's sources.

A cell is a code, or what is appended: the state's initials with the epoch, `<last` where an epoch before it is
remembered, `>id` where another producer id is in it, `+id` where one follows with the end. `=7:4` is what is answered.
"""

from __future__ import annotations

from textwrap import fill
from typing import Any

import attrs
import pytest

from harness.model import FrozenMap
from kafka_proto.broker.coordinator import coordinator as role
from kafka_proto.broker.coordinator.coordinator import Coordinator
from kafka_proto.broker.coordinator.transaction import (
    LAST_EPOCH,
    Answer,
    Block,
    CachedTransaction,
    ProducerIds,
    TransactionMetadata,
    TransactionRecord,
    TxnState,
)
from kafka_proto.broker.versions import KIP_360, KIP_890, KIP_890_4_4, BrokerVersion
from kafka_proto.log import MAX_EPOCH
from kafka_proto.requests import AddPartitionsToTxnRequest, EndTxnRequest, Error, InitProducerIdRequest

S = TxnState
STATES = (S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
CODES = {
    Error.PRODUCER_FENCED: "FENCED", Error.INVALID_PRODUCER_ID_MAPPING: "MAPPING", Error.INVALID_TXN_STATE: "STATE",
    Error.CONCURRENT_TRANSACTIONS: "WAIT", Error.TRANSACTION_ABORTABLE: "ABORTABLE", Error.NONE: "ok",
    Error.UNKNOWN_SERVER_ERROR: "SERVER", Error.INVALID_REQUEST: "REQUEST", Error.COORDINATOR_LOAD_IN_PROGRESS: "LOAD",
}
IDS = ProducerIds(Block(9, 1))


def init(*given: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(4, "tid", 60_000, *given)


def add(producer_id: int, epoch: int, *, verify_only: bool = False) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(4 if verify_only else 3, "tid", producer_id, epoch, ("T-0", "T-1"), verify_only)


def end(version: int, committed: bool, producer_id: int, epoch: int) -> EndTxnRequest:
    return EndTxnRequest(version, "tid", producer_id, epoch, committed)


def cell(version: BrokerVersion, request: Any, known: TransactionMetadata, pending: TxnState | None = None) -> str:
    """Return what becomes of a request."""
    cached = CachedTransaction(known, pending)
    if getattr(request, "verify_only", False):
        errors = version.coordinator.verify_partitions(request, cached)
        return " ".join(sorted({CODES[error] for error in errors.values()}, key=str.lower))
    state = Coordinator(FrozenMap({"tid": cached}), ids=IDS)
    state, (effect,) = role.receive(version.coordinator, state, request, now=1)
    if isinstance(effect, Answer):
        return CODES[effect.error] + (
            f"={effect.producer_id}:{effect.producer_epoch}" if effect.producer_id >= 0 else "")
    assert isinstance(effect, TransactionRecord) and effect.entry is not None
    entry = effect.entry
    assert state.transactions["tid"].pending_state is entry.state
    text = "".join(letter for letter in entry.state if letter.isupper()) + str(entry.producer_epoch)
    text += f"<{entry.last_producer_epoch}" if entry.last_producer_epoch >= 0 else ""
    text += f">{entry.producer_id}" if entry.producer_id != known.producer_id else ""
    text += f"+{entry.next_producer_id}" if entry.next_producer_id >= 0 else ""
    assert (state.ids.next_id is None) is (">" in text or "+" in text)
    _, effects = role.appended(version.coordinator, state, "tid", now=2)
    given = next(effect for effect in effects if isinstance(effect, Answer))
    said = "" if given.error is Error.NONE else f" {CODES[given.error]}"
    return f"{text}{said}" + (f"={given.producer_id}:{given.producer_epoch}" if given.producer_id >= 0 else "")


def table(version: BrokerVersion, requests: dict[str, Any], known: TransactionMetadata) -> str:
    """Return the table of a version: the answers by state, once where all are alike, and the requests that get them."""
    rows: dict[str, list[str]] = {}
    for name, request in requests.items():
        cells = [cell(version, request, attrs.evolve(known, state=state)) for state in STATES]
        cells.append(cell(version, request, attrs.evolve(known, state=S.ONGOING), S.PREPARE_COMMIT))
        rows.setdefault("|".join(cells if len(set(cells)) > 1 else cells[:1]), []).append(name)
    lines = (f"{cells} for {', '.join(names)}" for cells, names in rows.items())
    return "\n".join(fill(line, 118, subsequent_indent="  ") for line in lines)


NOW = TransactionMetadata(7, S.EMPTY, 3, 2, 6, partitions=("T-0",), timeout_ms=1, start_timestamp=0)
REQUESTS: dict[str, Any] = {
    "init": init(), "init 7:3": init(7, 3), "init 7:2": init(7, 2), "init 7:1": init(7, 1), "init 7:4": init(7, 4),
    "init 6:3": init(6, 3), "init 6:last": init(6, LAST_EPOCH), "init 7:none": init(7, -1),
    "add 7:3": add(7, 3), "add 7:2": add(7, 2), "add 7:4": add(7, 4), "add 8:3": add(8, 3),
    "verify 7:3": add(7, 3, verify_only=True), "verify 7:2": add(7, 2, verify_only=True),
    "verify 7:4": add(7, 4, verify_only=True), "verify 8:3": add(8, 3, verify_only=True),
    **{f"{word}{v} {p}:{e}": end(v, word == "commit", p, e) for v in (3, 5) for word in ("commit", "abort")
       for p, e in ((7, 3), (7, 2), (7, 4), (8, 3))},
}
LAST = attrs.evolve(NOW, producer_epoch=LAST_EPOCH, last_producer_epoch=LAST_EPOCH - 1, previous_producer_id=7)
AT_LAST: dict[str, Any] = {
    "init": init(), "init 7:last": init(7, LAST_EPOCH), "init 7:before": init(7, LAST_EPOCH - 1),
    "commit5 7:last": end(5, True, 7, LAST_EPOCH), "abort5 7:last": end(5, False, 7, LAST_EPOCH),
    "commit3 7:last": end(3, True, 7, LAST_EPOCH),
}
ROLLED = attrs.evolve(NOW, producer_id=8, producer_epoch=0, last_producer_epoch=LAST_EPOCH, previous_producer_id=7)
AFTER: dict[str, Any] = {
    "init 7:last": init(7, LAST_EPOCH), "init 7:before": init(7, LAST_EPOCH - 1), "init 8:0": init(8, 0),
    "commit5 7:last": end(5, True, 7, LAST_EPOCH), "abort5 7:last": end(5, False, 7, LAST_EPOCH),
    "commit5 7:bef": end(5, True, 7, LAST_EPOCH - 1), "commit5 6:last": end(5, True, 6, LAST_EPOCH),
    "commit5 8:0": end(5, True, 8, 0), "abort5 8:0": end(5, False, 8, 0),
}
ONE_ON = attrs.evolve(ROLLED, producer_epoch=1)
BEYOND = attrs.evolve(NOW, producer_epoch=MAX_EPOCH)
AT_MAX: dict[str, Any] = {"init": init(), "commit5 7:max": end(5, True, 7, MAX_EPOCH),
                          "abort5 7:max": end(5, False, 7, MAX_EPOCH), "abort3 7:max": end(3, False, 7, MAX_EPOCH)}
FIRST = attrs.evolve(NOW, producer_epoch=-1, last_producer_epoch=-1, partitions=())
INITS = {name: request for name, request in REQUESTS.items() if name.startswith("init")}
CASES: dict[str, tuple[BrokerVersion, dict[str, Any], TransactionMetadata]] = {
    "3.5": (KIP_360, REQUESTS, NOW), "4.0": (KIP_890, REQUESTS, NOW), "4.4": (KIP_890_4_4, INITS, NOW),
    "3.5, last epoch": (KIP_360, AT_LAST, LAST), "4.0, last epoch": (KIP_890, AT_LAST, LAST),
    "4.4, last epoch": (KIP_890_4_4, AT_LAST, LAST), "4.0, after the last epoch": (KIP_890, AFTER, ROLLED),
    "4.0, long after the last epoch": (KIP_890, AFTER, ONE_ON), "4.4, epoch for fencing": (KIP_890_4_4, AT_MAX, BEYOND),
    "4.0, epoch for fencing": (KIP_890, AT_MAX, BEYOND),
    "3.5, no epoch yet": (KIP_360, {"init": init(), "init 7:3": init(7, 3), "init 9:0": init(9, 0)}, FIRST),
}


TABLES = {
    "3.5": """
E4=7:4|PA4 WAIT|WAIT|WAIT|E4=7:4|E4=7:4|WAIT for init
E4<3=7:4|PA4 WAIT|WAIT|WAIT|E4<3=7:4|E4<3=7:4|WAIT for init 7:3
E3<2=7:3|PA4 WAIT|WAIT|WAIT|E3<2=7:3|E3<2=7:3|WAIT for init 7:2
FENCED|PA4 WAIT|WAIT|WAIT|FENCED|FENCED|WAIT for init 7:1, init 7:4, init 6:last
FENCED|FENCED|FENCED|FENCED|FENCED|FENCED|WAIT for init 6:3
REQUEST for init 7:none
O3<2|O3<2|WAIT|WAIT|O3<2|O3<2|WAIT for add 7:3
FENCED for add 7:2, add 7:4, verify 7:2, verify 7:4, commit3 7:2, commit3 7:4, abort3 7:2, abort3 7:4, commit5 7:2,
  commit5 7:4, abort5 7:2, abort5 7:4
MAPPING for add 8:3, verify 8:3, commit3 8:3, abort3 8:3, commit5 8:3, abort5 8:3
ok STATE|ok STATE|WAIT|WAIT|ok STATE|ok STATE|ok STATE for verify 7:3
STATE|PC3<2|WAIT|STATE|ok|STATE|WAIT for commit3 7:3, commit5 7:3
STATE|PA3<2|STATE|WAIT|STATE|ok|WAIT for abort3 7:3, abort5 7:3
""",
    "4.0": """
E4=7:4|PA5<4 WAIT|WAIT|WAIT|E4=7:4|E4=7:4|WAIT for init
E4<3=7:4|PA5<4 WAIT|WAIT|WAIT|E4<3=7:4|E4<3=7:4|WAIT for init 7:3
E3<2=7:3|PA5<4 WAIT|WAIT|WAIT|E3<2=7:3|E3<2=7:3|WAIT for init 7:2
FENCED|PA5<4 WAIT|WAIT|WAIT|FENCED|FENCED|WAIT for init 7:1, init 7:4, init 6:last
FENCED|FENCED|FENCED|FENCED|FENCED|FENCED|WAIT for init 6:3, add 7:2, add 7:4, commit5 7:4, abort5 7:4
REQUEST for init 7:none
O3<2|O3<2|WAIT|WAIT|O3<2|O3<2|WAIT for add 7:3
MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|WAIT for add 8:3, commit5 8:3, abort5 8:3
ABORTABLE ok|ABORTABLE ok|WAIT|WAIT|ABORTABLE ok|ABORTABLE ok|ABORTABLE ok for verify 7:3
FENCED for verify 7:2, verify 7:4, commit3 7:2, commit3 7:4, abort3 7:2, abort3 7:4
MAPPING for verify 8:3, commit3 8:3, abort3 8:3
STATE|PC3<2|WAIT|STATE|ok|STATE|WAIT for commit3 7:3
STATE|PA3<2|STATE|WAIT|STATE|ok|WAIT for abort3 7:3
STATE|PC4<3=7:4|FENCED|FENCED|STATE|STATE|WAIT for commit5 7:3
FENCED|FENCED|WAIT|STATE|ok=7:3|STATE|WAIT for commit5 7:2
PA4<3=7:4|PA4<3=7:4|FENCED|FENCED|PA4<3=7:4|PA4<3=7:4|WAIT for abort5 7:3
FENCED|FENCED|STATE|WAIT|STATE|ok=7:3|WAIT for abort5 7:2
""",
    "4.4": """
E4=7:4|PA4<3 WAIT|WAIT|WAIT|E4=7:4|E4=7:4|WAIT for init
E4<3=7:4|PA4<3 WAIT|WAIT|WAIT|E4<3=7:4|E4<3=7:4|WAIT for init 7:3
E3<2=7:3|PA4<3 WAIT|WAIT|WAIT|E3<2=7:3|E3<2=7:3|WAIT for init 7:2
FENCED|PA4<3 WAIT|WAIT|WAIT|FENCED|FENCED|WAIT for init 7:1, init 7:4, init 6:last
FENCED|FENCED|FENCED|FENCED|FENCED|FENCED|WAIT for init 6:3
REQUEST for init 7:none
""",
    "3.5, last epoch": """
E0>9=9:0|PA32767 WAIT|WAIT|WAIT|E0>9=9:0|E0>9=9:0|WAIT for init
E0<32766>9=9:0|PA32767 WAIT|WAIT|WAIT|E0<32766>9=9:0|E0<32766>9=9:0|WAIT for init 7:last
SERVER|PA32767 WAIT|WAIT|WAIT|SERVER|SERVER|WAIT for init 7:before
STATE|PC32766<32765|WAIT|STATE|ok|STATE|WAIT for commit5 7:last, commit3 7:last
STATE|PA32766<32765|STATE|WAIT|STATE|ok|WAIT for abort5 7:last
""",
    "4.0, last epoch": """
E0>9=9:0|SERVER|WAIT|WAIT|E0>9=9:0|E0>9=9:0|WAIT for init
E0<32766>9=9:0|SERVER|WAIT|WAIT|E0<32766>9=9:0|E0<32766>9=9:0|WAIT for init 7:last
SERVER|SERVER|WAIT|WAIT|SERVER|SERVER|WAIT for init 7:before
STATE|PC32767<32766+9=9:0|FENCED|FENCED|STATE|STATE|WAIT for commit5 7:last
PA32767<32766+9=9:0|PA32767<32766+9=9:0|FENCED|FENCED|PA32767<32766+9=9:0|PA32767<32766+9=9:0|WAIT for abort5 7:last
STATE|PC32766<32765|WAIT|STATE|ok|STATE|WAIT for commit3 7:last
""",
    "4.4, last epoch": """
E0>9=9:0|PA32767<32766+9 WAIT|WAIT|WAIT|E0>9=9:0|E0>9=9:0|WAIT for init
E0<32766>9=9:0|PA32767<32766+9 WAIT|WAIT|WAIT|E0<32766>9=9:0|E0<32766>9=9:0|WAIT for init 7:last
SERVER|PA32767<32766+9 WAIT|WAIT|WAIT|SERVER|SERVER|WAIT for init 7:before
STATE|PC32767<32766+9=9:0|FENCED|FENCED|STATE|STATE|WAIT for commit5 7:last
PA32767<32766+9=9:0|PA32767<32766+9=9:0|FENCED|FENCED|PA32767<32766+9=9:0|PA32767<32766+9=9:0|WAIT for abort5 7:last
STATE|PC32766<32765|WAIT|STATE|ok|STATE|WAIT for commit3 7:last
""",
    "4.0, after the last epoch": """
E0<32766=8:0|PA2<1 WAIT|WAIT|WAIT|E0<32766=8:0|E0<32766=8:0|WAIT for init 7:last
FENCED|FENCED|FENCED|FENCED|FENCED|FENCED|WAIT for init 7:before
E1<0=8:1|PA2<1 WAIT|WAIT|WAIT|E1<0=8:1|E1<0=8:1|WAIT for init 8:0
FENCED|FENCED|FENCED|FENCED|ok=8:0|STATE|WAIT for commit5 7:last
FENCED|FENCED|FENCED|FENCED|STATE|ok=8:0|WAIT for abort5 7:last
MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|WAIT for commit5 7:bef, commit5 6:last
STATE|PC1<0=8:1|FENCED|FENCED|STATE|STATE|WAIT for commit5 8:0
PA1<0=8:1|PA1<0=8:1|FENCED|FENCED|PA1<0=8:1|PA1<0=8:1|WAIT for abort5 8:0
""",
    "4.0, long after the last epoch": """
E1<32766=8:1|PA3<2 WAIT|WAIT|WAIT|E1<32766=8:1|E1<32766=8:1|WAIT for init 7:last
FENCED|FENCED|FENCED|FENCED|FENCED|FENCED|WAIT for init 7:before
FENCED|PA3<2 WAIT|WAIT|WAIT|FENCED|FENCED|WAIT for init 8:0
MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|MAPPING|WAIT for commit5 7:last, abort5 7:last, commit5 7:bef, commit5 6:last
FENCED|FENCED|WAIT|STATE|ok=8:1|STATE|WAIT for commit5 8:0
FENCED|FENCED|STATE|WAIT|STATE|ok=8:1|WAIT for abort5 8:0
""",
    "4.4, epoch for fencing": """
E0>9=9:0|PA32767<32767+9 WAIT|WAIT|WAIT|E0>9=9:0|E0>9=9:0|WAIT for init
STATE|SERVER|FENCED|FENCED|STATE|STATE|WAIT for commit5 7:max
PA32767<32767+9=9:0|PA32767<32767+9=9:0|FENCED|FENCED|PA32767<32767+9=9:0|PA32767<32767+9=9:0|WAIT for abort5 7:max
STATE|PA32767<2|STATE|WAIT|STATE|ok|WAIT for abort3 7:max
""",
    "4.0, epoch for fencing": """
E0>9=9:0|SERVER|WAIT|WAIT|E0>9=9:0|E0>9=9:0|WAIT for init
STATE|SERVER|FENCED|FENCED|STATE|STATE|WAIT for commit5 7:max
SERVER|SERVER|FENCED|FENCED|SERVER|SERVER|WAIT for abort5 7:max
STATE|PA32767<2|STATE|WAIT|STATE|ok|WAIT for abort3 7:max
""",
    "3.5, no epoch yet": """
E0=7:0|PA0 WAIT|WAIT|WAIT|E0=7:0|E0=7:0|WAIT for init, init 7:3, init 9:0
""",
}
"""The last column is Ongoing with a change pending; those before it are `STATES`."""


@pytest.mark.parametrize("title", CASES)
def test_each_request_is_answered_in_each_state_as_by_kafka(title: str) -> None:
    """Guard by guard: the first that holds is the answer."""
    assert table(*CASES[title]) == TABLES[title].strip("\n")
