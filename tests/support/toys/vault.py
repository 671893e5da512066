"""A protocol whose flaw is eight steps away, and which few runs meet: six turns of a dial, a door, and a crash.

Its scenario claims what does not hold; runs that are not many say nothing of it, a search finds it at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

import harness.model as m

CODE = (2, 0, 1, 1, 2, 0)


@attrs.frozen
class Vault:
    """The dial and the open door are kept, the guard is not."""

    turned: tuple[int, ...] = m.persisted(default=())
    is_open: bool = m.persisted(default=False)
    is_guarded: bool = m.volatile(default=False)


class Door(m.Actor[Vault]):
    """Opens where its dial was turned by the code, and is guarded until it crashes."""

    name = "door"
    initial = Vault()
    may_crash = True

    def __init__(self, digits: int) -> None:
        self.digits = digits

    def step(self, local: Vault) -> Iterable[m.Turn[Vault]]:
        if len(local.turned) < len(CODE):
            for digit in range(self.digits):
                yield m.Turn("TurnDial", (f"{digit}",), attrs.evolve(local, turned=(*local.turned, digit)), flush=True)
        if local.turned == CODE and not local.is_open:
            yield m.Turn("OpenDoor", (), attrs.evolve(local, is_open=True, is_guarded=True), flush=True)


def unguarded(view: m.View) -> m.Reason:
    """An open door is guarded."""
    vault = view["door"]
    return "the door is open, and nobody guards it" if vault.is_open and not vault.is_guarded else None


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, history_variables: bool
) -> m.Model:
    """Return the model."""
    guarded = m.always("Guarded", unguarded)
    return m.Model("vault", (Door(sizes["digits"]),), ({},), net, faults, (guarded,), sizes=sizes, types=(Vault,))


def system() -> m.System:
    """Return the protocol, with one scenario that expects nothing bad, and one in virtual time."""
    crash = m.Scenario("vault-crash", "a crash of the door", "vault", faults=m.Faults(crash=1, targets=("door",)),
                       claims=("Guarded",))
    calm = m.Scenario("vault-calm", "nothing goes wrong", "vault", claims=("Guarded",))
    timed = attrs.evolve(crash, name="vault-timed", mode="timed")
    spec = m.ModelSpec("vault", "a door with a dial", build, {"digits": m.Size(3)}, may_fault=True)
    return m.System("vault", (spec,), (crash, calm, timed))
