"""Clients of a register that servers keep: what they ask, and when their calls are linearizable.

See docs/use/your-own-protocol.md; single_copy_register.py, quorum_register.py and paxos.py are three ways to keep it.
"""

from collections.abc import Callable, Iterable, Mapping

import attrs

from harness import model as m


@attrs.frozen
class Put(m.Message):
    request: str
    value: str

@attrs.frozen
class Get(m.Message):
    request: str

@attrs.frozen
class PutOk(m.Message):
    request: str

@attrs.frozen
class GetOk(m.Message):
    request: str
    value: str | None

@attrs.frozen
class Asking:
    request: str | None  # that is not answered yet
    requests: int = 1  # so many were sent


class Client(m.Actor[Asking]):
    """Writes its value by one server, and then reads by the next one."""

    def __init__(self, n: int, servers: tuple[str, ...]) -> None:
        self.name, self.reads_by = f"c{n + 1}", servers[(n + 1) % len(servers)]
        first = f"{self.name}.1"
        self.initial = Asking(first)
        self.sent_at_first = (Put(first, "ABCDEFGHI"[n], source=self.name, dest=servers[n % len(servers)]),)

    def on_message(self, local: Asking, message: m.Message) -> Iterable[m.Turn[Asking]]:
        match message:
            case PutOk(request=request) if request == local.request:
                second = f"{self.name}.2"
                get = Get(second, source=self.name, dest=self.reads_by)
                yield m.Turn("ReceivePutOk", (self.name,), Asking(second, 2), (get,))
            case GetOk(request=request) if request == local.request:
                yield m.Turn("ReceiveGetOk", (self.name,), Asking(None, local.requests))


def called(message: m.Message) -> m.Called | None:
    match message:
        case Put(request=request, value=value):
            return m.Called(message.source, m.Operation("Write", value), request)
        case Get(request=request):
            return m.Called(message.source, m.Operation("Read"), request)
    return None


def answered(message: m.Message) -> m.Answered | None:
    match message:
        case PutOk(request=request):
            return m.Answered(message.dest, None, request)
        case GetOk(request=request, value=value):
            return m.Answered(message.dest, value, request)
    return None


CALLS = m.calls_of(called, answered)


def register(value: m.Value, operation: m.Operation) -> tuple[m.Value, m.Value]:
    """What an operation makes of a register, and its answer."""
    return (operation.argument, None) if operation.name == "Write" else (value, value)


def model(
    name: str, server: Callable[[str, tuple[str, ...]], m.Actor[m.Value]], types: tuple[type, ...],
    sizes: Mapping[str, int], net: m.Network, faults: m.Faults,
) -> m.Model:
    """Return clients with servers, each made of its name and its peers."""
    servers = tuple(f"s{n + 1}" for n in range(sizes["servers"]))
    clients = [Client(n, servers) for n in range(sizes["clients"])]

    def chosen(view: m.View) -> bool:
        waiting = [message for client in clients for message in net.contents(view.at("inbox", client.name))]
        return any(isinstance(message, GetOk) and message.value is not None for message in waiting)

    return m.Model(
        name, (*(server(own, tuple(peer for peer in servers if peer != own)) for own in servers), *clients), ({},),
        net, faults, (m.linearizable("Linearizable", CALLS, None, register), m.sometimes("ValueChosen", chosen)),
        sizes=sizes, types=(Put, Get, PutOk, GetOk, Asking, *types), auxiliary=(CALLS,),
    )
