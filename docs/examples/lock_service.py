"""A lock service, as somebody else's protocol would be: one file. docs/use/your-own-protocol.md walks through it."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import attrs

from harness import model as m


@attrs.frozen
class Acquire(m.Message):
    lease: int  # the newest one that the client was granted, so that no two of its requests are equal

@attrs.frozen
class Granted(m.Message):
    lease: int  # the fencing token: greater with every grant

@attrs.frozen
class Release(m.Message):
    lease: int

@attrs.frozen
class Holder:
    state: str = "idle"  # or waiting, or holding
    lease: int = 0

@attrs.frozen
class Lock:
    requests: tuple[Acquire, ...] = ()  # in the order of arrival: the nth one gets lease n
    granted: int = 0  # the newest lease
    released: int = 0  # the newest lease that was given back


class Client(m.Actor[Holder]):
    def __init__(self, name: str, leases: int) -> None:
        self.name, self.leases, self.initial = name, leases, Holder()

    def step(self, local: Holder) -> Iterable[m.Turn[Holder]]:
        if local.state == "idle" and local.lease < self.leases:
            acquire, op = Acquire(local.lease, source=self.name, dest="server"), m.Op(self.name, "lock", "invoke")
            yield m.Turn("Lock", (self.name,), Holder("waiting", local.lease), (acquire,), kind=m.Kind.COMMAND, op=op)
        if local.state == "holding":
            release, op = Release(local.lease, source=self.name, dest="server"), m.Op(self.name, "unlock", "ok")
            yield m.Turn("Unlock", (self.name,), Holder("idle", local.lease), (release,), kind=m.Kind.COMMAND, op=op)

    def on_message(self, local: Holder, message: m.Message) -> Iterable[m.Turn[Holder]]:
        if isinstance(message, Granted) and local.state == "waiting" and message.lease > local.lease:
            op = m.Op(self.name, "lock", "ok", message.lease)
            yield m.Turn("TakeLock", (self.name,), Holder("holding", message.lease), op=op)
        else:
            yield m.Turn("IgnoreOldLease", (self.name,), local)


class Server(m.Actor[Lock]):
    def __init__(self, hasty: bool) -> None:
        self.name, self.hasty, self.initial = "server", hasty, Lock()

    def on_message(self, local: Lock, message: m.Message) -> Iterable[m.Turn[Lock]]:
        if isinstance(message, Acquire) and message not in local.requests:
            local = attrs.evolve(local, requests=(*local.requests, message))
        if isinstance(message, Release) and (self.hasty or message.lease == local.granted):
            local = attrs.evolve(local, released=local.granted)
        waiting = local.requests[local.granted :] if local.released == local.granted else ()
        grants = tuple(Granted(local.granted + 1, source="server", dest=first.source) for first in waiting[:1])
        local = attrs.evolve(local, granted=local.granted + len(grants))
        yield m.Turn(f"Receive{message.type}", (message.source,), local, grants)


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    clients = [Client(f"c{n + 1}", sizes["leases"]) for n in range(sizes["clients"])]

    def those(view: m.View, state: str) -> str:
        return ", ".join(client.name for client in clients if view[client.name].state == state)

    properties = (
        m.always("MutualExclusion", lambda v: f"{who} hold the lock" if "," in (who := those(v, "holding")) else None),
        m.eventually("EveryRequestIsGranted", lambda v: f"no lock for {who}" if (who := those(v, "waiting")) else None),
        m.sometimes("GrantedAfterWaiting", lambda _, s: isinstance(s.consumed, Release) and s.sent != (), on="step"),
    )
    return m.Model(
        "lock-service", (Server(settings["variant"] == "hasty"), *clients), ({},), net, faults, properties,
        sizes=sizes, settings=settings, types=(Acquire, Granted, Release, Holder, Lock),
        application=lambda command: SimpleNamespace(lock=lambda: command("Lock"), unlock=lambda: command("Unlock")),
    )


def system() -> m.System:
    spec = m.ModelSpec(
        "lock-service", "clients that take turns with a lock", build, {"clients": m.Size(2), "leases": m.Size(2)},
        {"variant": m.Setting(("fifo", "hasty"), "fifo")}, ("bag", "fifo"), may_fault=True,
    )
    flawed = m.Scenario(
        "double-release", "a Release that arrives twice", "lock-service", {"clients": 3}, {"variant": "hasty"},
        faults=m.Faults(duplicate=2, delay=1), claims=("MutualExclusion", "EveryRequestIsGranted"),
        witnesses=("GrantedAfterWaiting",), expected="MutualExclusion", repaired="double-release-repaired",
    )
    repaired = attrs.evolve(flawed, name="double-release-repaired", settings={}, expected=None, repaired=None)
    return m.System("lock-service", (spec,), (flawed, repaired))
