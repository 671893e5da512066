"""A protocol that never ends and never comes back to a state: clients count at a server that crashes now and then.

For tests of long runs. `FAULTY` is a scenario with more faults than a test has steps. As a program it is the command
line that knows this protocol, and ends by writing the most memory that it had, in kB, as the last line on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import attrs

import harness.model as m

NEVER_USED_UP = 10_000_000


@attrs.frozen
class Ask(m.Message):
    n: int


@attrs.frozen
class Told(m.Message):
    n: int
    total: int


@attrs.frozen
class Ledger:
    total: int = m.persisted(default=0)
    newest: tuple[int, ...] = m.persisted(default=())  # the questions answered last


@attrs.frozen
class Asker:
    n: int = 0
    total: int = 0
    waiting: bool = False


class Server(m.Actor[Ledger]):
    name = "server"
    initial = Ledger()
    may_crash = True

    def __init__(self, remembers: int) -> None:
        self.remembers = remembers

    def on_message(self, local: Ledger, message: m.Message) -> Iterable[m.Turn[Ledger]]:
        assert isinstance(message, Ask)
        after = Ledger(local.total + 1, (*local.newest, message.n)[-self.remembers :])
        answer = Told(message.n, after.total, source=self.name, dest=message.source)
        yield m.Turn("Answer", (message.source,), after, (answer,), flush=True)


class Client(m.Actor[Asker]):
    initial = Asker()

    def __init__(self, name: str) -> None:
        self.name = name

    def _ask(self, local: Asker) -> tuple[m.Message, ...]:
        return (Ask(local.n, source=self.name, dest="server"),)

    def step(self, local: Asker) -> Iterable[m.Turn[Asker]]:
        if not local.waiting:
            asking = attrs.evolve(local, n=local.n + 1, waiting=True)
            yield m.Turn("Ask", (self.name,), asking, self._ask(asking))

    def on_message(self, local: Asker, message: m.Message) -> Iterable[m.Turn[Asker]]:
        assert isinstance(message, Told)
        if local.waiting and message.n == local.n:
            local = attrs.evolve(local, waiting=False, total=message.total)
        yield m.Turn("Hear", (self.name,), local)

    def timers(self, local: Asker) -> tuple[str, ...]:
        return ("retry",) if local.waiting else ()

    def timer_fired(self, local: Asker, timer: str) -> Iterable[m.Turn[Asker]]:
        yield m.Turn("AskAgain", (self.name,), local, self._ask(local))


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    clients = tuple(Client(f"c{n}") for n in range(1, sizes["clients"] + 1))

    def lost(view: m.View) -> str | None:
        most = max(view[client.name].total for client in clients)
        return None if view["server"].total >= most else f"the server forgot what it answered: {most}"

    return m.Model(
        "endless", (Server(sizes["remembers"]), *clients), ({},), net, faults, (m.always("NothingIsForgotten", lost),),
        sizes=sizes, settings=settings, types=(Ask, Told, Ledger, Asker),
    )


FAULTY = m.Scenario(
    "endless-faulty", "everything goes wrong, for ever", "endless", claims=("NothingIsForgotten",), steps=400,
    faults=m.Faults(drop=NEVER_USED_UP, duplicate=NEVER_USED_UP, delay=NEVER_USED_UP, crash=NEVER_USED_UP,
                    targets=("server",)),
)


def system() -> m.System:
    sizes = {"clients": m.Size(3), "remembers": m.Size(20, 1, 1_000_000)}
    spec = m.ModelSpec("endless", "clients that ask for ever", build, sizes, {}, ("bag", "fifo"), may_fault=True)
    return m.System("endless", (spec,), (FAULTY,))


@cache
def registered() -> None:
    """Make the system known in this process, whichever module of tests is first."""
    m.register(system())


def most_memory_kb() -> int:
    """Return the most resident memory that this program had, without that of the one that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    from harness.cli import main

    m.register(system())
    try:
        main()
    finally:
        sys.stdout.flush()
        print(most_memory_kb(), file=sys.stderr)
