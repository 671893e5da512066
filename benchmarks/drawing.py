"""Drawing a situation: requests of some clients, which mostly make sense where they come, and sometimes not.

Ours answers as it is drawn, so that producer ids, epochs, sequences and generations go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness.simulate.strategies.chance import Seeded
from kafka_proto.broker.coordinator.transaction import PREPARED
from kafka_proto.broker.versions import version_of
from kafka_proto.clients.producer import FAMILIES, Family
from kafka_proto.conformance.player import DELIVERED, HELD, REPEATED_UNTIL
from kafka_proto.conformance.playing import PARTITIONS, OfValues
from kafka_proto.gateway.offer import ADD_PARTITIONS_TO_TXN, RELEASES, WRITE_TXN_MARKERS

STEPS = 25
TIDS = ("tid-A", "tid-B")
SHORT, TIMEOUT, LONGEST_TIMEOUT = 1_000, 600_000, 900_000
"""Of a transaction, in milliseconds: one that is left open does not time out while others are played."""
LAST_EPOCHS = (32_762, 32_763, 32_764, 32_765, 32_766)
GROUP, INSTANCE = "G", "i1"
NOWHERE = 7
"""A partition that the topic does not have."""
LEVELS = ("read_uncommitted", "read_committed")
ADDED_BY_BROKERS = 4
"""The version from which on AddPartitionsToTxn is what brokers send each other."""
Fields = dict[str, Any]


@attrs.frozen
class Owner:
    """Whose request it is: as the coordinator knows it, mostly."""

    transactional_id: str
    producer_id: str | int
    producer_epoch: int


class Drawing:
    """One situation, request after request; ours answers each, so that the next one may go on from there."""

    def __init__(self, release: str, level: int, families: tuple[str, ...], seed: int, is_last: bool = False) -> None:
        self.chance = Seeded(seed)
        self.is_last = is_last
        """Whether the epochs are about to run out."""
        self.release, self.level, self.families = release, level, families
        self.family = self.pick(families)
        self.player = OfValues(version_of(release, level))
        self.cluster = self.player.cluster
        self.given: list[tuple[str, int]] = []
        """Producer ids and epochs that were answered, in order."""
        self.without: list[tuple[str, int]] = []
        """Those of producers without transactional id."""
        self.member: tuple[str, int] | None = None
        """The one member of the group, and its generation."""
        self.instance: str | None = None
        """What the member is an instance of."""
        self.steps: list[Fields] = []
        self.values = 0

    def pick(self, options: Any) -> Any:
        return options[self.chance.index(len(options), "which")]

    def newest(self, api: int) -> int:
        """Return the last version of an API that the release has."""
        return RELEASES[self.release][api][1]

    def once_in(self, n: int) -> bool:
        return self.chance.index(n, "whether") == 0

    def script(self) -> Fields:
        """Return the situation without answers; it ends before a transaction is stuck, for whoever looks would wait."""
        if self.is_last:
            self.last_epochs(FAMILIES[self.family])
        else:
            self.ask(*self.init(FAMILIES[self.family], self.owner("tid-A")))
        while len(self.steps) < STEPS and not self.is_stuck():
            before = len(self.steps)
            if self.once_in(120):
                self.time_out(self.any_family())
            if self.once_in(8):
                self.hold()
            else:
                self.one()
            if self.is_stuck():
                del self.steps[before:]
        after = {"coordinator": list(TIDS), "partitions": [str(index) for index in PARTITIONS]}
        return {"family": self.family, "steps": [{**step, "after": after} for step in self.steps]}

    def one(self) -> None:
        """Draw a request."""
        draw = self.pick(WEIGHTED)
        self.ask(*draw(self, self.any_family(), self.any_owner()))

    def any_family(self) -> Family:
        return FAMILIES[self.pick(self.families) if self.once_in(8) else self.family]

    def any_owner(self) -> Owner:
        return self.owner(self.pick(TIDS) if self.once_in(4) else "tid-A")

    def is_stuck(self) -> bool:
        return any(self.known(tid)["state"] in PREPARED for tid in TIDS)

    def last_epochs(self, family: Family) -> None:
        """Let tid-A begin with one of the last epochs."""
        begin = {"transactional_id": "tid-A", "transaction_timeout": TIMEOUT}
        self.ask("InitProducerId", 1, begin)
        epoch = self.pick(LAST_EPOCHS)
        self.player.repeat(epoch)
        self.steps.append({"note": f"{REPEATED_UNTIL}{epoch}"})
        self.given.append(("pid1", epoch))

    def hold(self) -> None:
        """Hold the markers of a transaction that ends or is aborted, while some requests come."""
        self.cluster.holds_markers = True
        owner = self.any_owner()
        draw = Drawing.init if self.once_in(4) else Drawing.end
        ended = draw(self, self.any_family(), owner)
        self.ask(*ended)
        if not self.cluster.held:
            self.cluster.holds_markers = False
            return
        self.steps.append({"note": HELD})
        for _ in range(1 + self.chance.index(6, "how many")):
            if self.once_in(4):
                api, version, fields = ended
                other = {"committed": not fields["committed"]} if api == "EndTxn" and self.once_in(3) else {}
                self.ask(api, version, {**fields, **other})
            else:
                self.one()
        self.steps.append({"note": DELIVERED})
        self.cluster.deliver_held()

    def ask(self, api: str, version: int, fields: Fields) -> Fields:
        asked: Fields = {"api": api, "version": version, "fields": fields}
        self.steps.append({"request": asked})
        shown = self.player.answer(**asked)
        if isinstance(shown.get("producer_id"), str):
            owns = self.given if fields["transactional_id"] is not None else self.without
            owns.append((shown["producer_id"], shown["producer_epoch"]))
        if shown.get("member_id") and shown["error"] == "NONE":
            self.member = shown["member_id"], shown["generation"]
        elif api == "LeaveGroup" and shown["error"] == "NONE":
            self.member = None
        return shown

    def time_out(self, family: Family) -> None:
        """Let a transaction of tid-A time out; before and after nothing does, however long the requests take."""
        begin = {"transactional_id": "tid-A", "transaction_timeout": SHORT}
        begin |= {"producer_id": -1, "producer_epoch": -1} if family.bumps_epoch else {}
        begun = self.ask("InitProducerId", family.init_producer_id, begin)
        if begun["error"] == "NONE":
            owner = Owner("tid-A", begun["producer_id"], begun["producer_epoch"])
            self.ask(*self.add(family, owner))
            self.ask(*self.produce(family, owner))
            if self.known("tid-A")["state"] == "Ongoing":
                self.steps.append({"note": "waited until the coordinator's state is one of ['CompleteAbort']"})
                while self.known("tid-A")["state"] == "Ongoing" and self.cluster.time_out():
                    pass
        self.ask("InitProducerId", family.init_producer_id, {**begin, "transaction_timeout": TIMEOUT})

    def owner(self, tid: str) -> Owner:
        """Return what the coordinator knows of a transactional id; sometimes what it knew, or never did."""
        if self.once_in(60):
            return Owner(self.pick(("", "tid-Z")), *(self.pick(self.given) if self.given else ("pid1", 0)))
        known = self.player.describe(tid)
        if not isinstance(known, dict):
            return Owner(tid, *self.pick(self.given)) if self.given and self.once_in(2) else Owner(tid, "pid1", 0)
        owner = Owner(tid, known["producer_id"], known["producer_epoch"])
        if self.given and self.once_in(10):
            return Owner(tid, *self.pick(self.given))
        if self.once_in(15):
            return attrs.evolve(owner, producer_epoch=max(0, owner.producer_epoch + self.pick((-1, 1))))
        return owner

    def known(self, tid: str) -> Mapping[str, Any]:
        found = self.player.describe(tid)
        return found if isinstance(found, dict) else {"state": "none", "partitions": []}

    def init(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        fields: Fields = {"transactional_id": owner.transactional_id, "transaction_timeout": TIMEOUT}
        if self.once_in(12):
            fields["transactional_id"] = None
        elif self.once_in(25):
            fields |= self.pick(({"transactional_id": ""}, {"transaction_timeout": 0},
                                 {"transaction_timeout": LONGEST_TIMEOUT + 1}))
        if family.bumps_epoch:
            goes_on = fields["transactional_id"] is not None and self.given and self.once_in(2)
            fields["producer_id"], fields["producer_epoch"] = (
                (owner.producer_id, owner.producer_epoch) if goes_on else (-1, -1))
            if goes_on and self.once_in(20):
                fields |= self.pick(({"producer_id": -1}, {"producer_epoch": -1}))
        return "InitProducerId", family.init_producer_id, fields

    def add(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        indexes = self.pick(([0], [0], [1], [0, 1])) if not self.once_in(15) else [0, NOWHERE]
        fields = {**attrs.asdict(owner), "partitions": indexes}
        of_brokers = range(ADDED_BY_BROKERS, self.newest(ADD_PARTITIONS_TO_TXN) + 1)
        if of_brokers and self.once_in(6):
            looks = self.once_in(2) or (self.release >= "4" and self.level == 0)  # to add throws, and the id is stuck
            return "AddPartitionsToTxn", self.pick(of_brokers), {**fields, "verify_only": looks}
        return "AddPartitionsToTxn", family.add_partitions, fields

    def produce(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        index = self.pick((0, 0, 1)) if not self.once_in(25) else NOWHERE
        fields = {**attrs.asdict(owner), "partition": index, "acks": -1, "transactional": True}
        if (self.without and self.once_in(4)) or self.once_in(20):
            producer = self.pick(self.without) if self.without else ("pid1", 0)
            fields |= {"transactional_id": None, "producer_id": producer[0], "producer_epoch": producer[1],
                       "transactional": self.once_in(15)}
        elif self.once_in(25):
            fields["transactional"] = False
        count = self.pick((1, 1, 1, 2, 3))
        fields |= {"base_sequence": self.sequence(fields), "records": [self.value() for _ in range(count)]}
        return "Produce", family.produce, fields

    def sequence(self, fields: Fields) -> int:
        """Return the next sequence of a producer in a partition; sometimes one again, or too far, or the first."""
        following = 0
        if fields["partition"] in PARTITIONS:
            seen = self.player.partition(fields["partition"])
            for producer, epoch, last, _ in seen["producers"]:
                if producer == fields["producer_id"] and epoch == fields["producer_epoch"]:
                    following = int(last) + 1
        if self.once_in(6):
            following = max(0, (following - 2, following - 1, following + 1, 0)[self.chance.index(4, "sequence")])
        return following

    def value(self) -> str:
        self.values += 1
        return f"v{self.values}"

    def end(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "EndTxn", family.end_txn, {**attrs.asdict(owner), "committed": self.once_in(2)}

    def add_offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "AddOffsetsToTxn", family.add_offsets, {**attrs.asdict(owner), "group_id": GROUP}

    def commit_offset(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        fields = {**attrs.asdict(owner), "group_id": GROUP, "partition": self.pick(PARTITIONS),
                  "offset": self.chance.index(20, "offset")}
        if family.txn_offset_commit >= 3:
            member, generation = self.membership()
            fields |= {"generation_id": generation, "member_id": member, "group_instance_id": self.instance_of()}
        return "TxnOffsetCommit", family.txn_offset_commit, fields

    def commit_plain(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        member, generation = self.membership()
        version = 9 if self.release >= "4" and self.once_in(3) else 8
        return "OffsetCommit", version, {
            "group_id": GROUP, "partition": self.pick(PARTITIONS), "generation": generation, "member_id": member,
            "group_instance_id": self.instance_of(), "offset": self.chance.index(20, "offset")}

    def membership(self) -> tuple[str, int]:
        """Return a member and a generation to commit offsets by: mostly right, or none."""
        if self.member is None or self.once_in(3):
            return ("nobody", 1) if self.once_in(20) else ("", -1)
        member, generation = self.member
        return member, generation + (self.pick((-1, 1)) if self.once_in(6) else 0)

    def group(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        """Join the group where it is empty, leave it where it is not: a rebalance of two takes its time.

        An instance may join again, as whatever it was is replaced; who is not known is refused.
        """
        if self.once_in(6):
            return self.pick((("LeaveGroup", 2, {"group_id": GROUP, "member_id": "nobody"}),
                              ("JoinGroup+SyncGroup", 5, {"group_id": GROUP, "member_id": "nobody",
                                                          "group_instance_id": self.instance_of()})))
        if self.member is not None and (self.instance is None or self.once_in(2)):
            return "LeaveGroup", 2, {"group_id": GROUP, "member_id": self.member[0]}
        if self.member is None:
            self.instance = self.pick((None, INSTANCE))
        return "JoinGroup+SyncGroup", 5, {"group_id": GROUP, "member_id": "", "group_instance_id": self.instance}

    def instance_of(self) -> str | None:
        """Return the instance that commits: mostly that of the member."""
        if self.once_in(12):
            return self.pick((None, INSTANCE, "i2"))
        return None if self.member is None else self.instance

    def offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "OffsetFetch", 7, {"group_id": GROUP, "partition": self.pick(PARTITIONS),
                                  "require_stable": self.once_in(2)}

    def fetch(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "Fetch", 12, {"partition": self.pick(PARTITIONS), "fetch_offset": self.chance.index(8, "offset"),
                             "isolation_level": self.pick(LEVELS)}

    def list_offsets(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "ListOffsets", 5, {"partition": self.pick(PARTITIONS), "timestamp": self.pick((-1, -2)),
                                  "isolation_level": self.pick(LEVELS)}

    def delete(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "DeleteRecords", 2, {"partition": self.pick(PARTITIONS), "offset": self.pick((-1, 1, 2, 4))}

    def mark(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        version = self.newest(WRITE_TXN_MARKERS)
        fields: Fields = {"producer_id": owner.producer_id, "producer_epoch": owner.producer_epoch,
                          "coordinator_epoch": 0, "committed": self.once_in(2), "partitions": [self.pick(PARTITIONS)]}
        return "WriteTxnMarkers", version, fields | ({"transaction_version": self.pick((0, 2))} if version > 1 else {})

    def describe(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        return "DescribeTransactions", 0, {"transactional_ids": [self.pick((*TIDS, "tid-Z"))]}

    def listed(self, family: Family, owner: Owner) -> tuple[str, int, Fields]:
        states = self.pick(([], ["Ongoing"], ["Empty", "CompleteAbort"], ["CompleteCommit"]))
        producers = [owner.producer_id] if self.once_in(3) else []
        return "ListTransactions", 0, {"state_filters": states, "producer_id_filters": producers}


Draw = Callable[[Drawing, Family, Owner], tuple[str, int, Fields]]
WEIGHTS: tuple[tuple[Draw, int], ...] = (
    (Drawing.init, 8), (Drawing.add, 12), (Drawing.produce, 24), (Drawing.end, 14), (Drawing.add_offsets, 5),
    (Drawing.commit_offset, 6), (Drawing.commit_plain, 1), (Drawing.group, 2), (Drawing.offsets, 4), (Drawing.fetch, 5),
    (Drawing.list_offsets, 3), (Drawing.delete, 1), (Drawing.mark, 1), (Drawing.describe, 1), (Drawing.listed, 1),
)
WEIGHTED = tuple(draw for draw, weight in WEIGHTS for _ in range(weight))
