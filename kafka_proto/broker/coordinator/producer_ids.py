"""Producer ids in blocks: a controller gives each block once, a broker uses it up (`RPCProducerIdManager`, KIP-730)."""

from __future__ import annotations

import attrs


@attrs.frozen
class Block:
    first: int
    size: int


@attrs.frozen
class ProducerIds:
    """A broker's block of ids, and the next of them that is free. A crash loses what is left of a block."""

    block: Block | None = None
    used: int = 0

    @property
    def next_id(self) -> int | None:
        """Return the next free id, or None: a block has to be asked for."""
        if self.block is None or self.used == self.block.size:
            return None
        return self.block.first + self.used

    def take(self) -> ProducerIds:
        """Return the ids without the next one."""
        return attrs.evolve(self, used=self.used + 1)
