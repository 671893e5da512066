"""A register of which each server keeps a copy of its own: linearizable with one server, and not with two."""

from collections.abc import Iterable, Mapping

import attrs
from register import Get, GetOk, Put, PutOk, model

from harness import model as m


@attrs.frozen
class Copy:
    value: str | None = None


class Server(m.Actor[Copy]):
    def __init__(self, name: str, peers: tuple[str, ...]) -> None:
        self.name, self.initial = name, Copy()

    def on_message(self, local: Copy, message: m.Message) -> Iterable[m.Turn[Copy]]:
        match message:
            case Put(request=request, value=value):
                ok = PutOk(request, source=self.name, dest=message.source)
                yield m.Turn("ReceivePut", (self.name,), Copy(value), (ok,))
            case Get(request=request):
                answer = GetOk(request, local.value, source=self.name, dest=message.source)
                yield m.Turn("ReceiveGet", (self.name,), local, (answer,))


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    return model("single-copy-register", Server, (Copy,), sizes, net, faults)


def system() -> m.System:
    spec = m.ModelSpec(
        "single-copy-register", "a register in one place, or in several that know nothing of each other", build,
        {"clients": m.Size(2), "servers": m.Size(1)}, networks=("bag", "fifo"), may_fault=True,
    )
    return m.System("single-copy-register", (spec,))
