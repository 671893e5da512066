"""Messages in flight along a run: what sent each and what ended it, forwards and backwards.

What is in flight is known from the state's inboxes, so that copies, merged sends and messages lost in a crash are
reported as they happened. A step's `MessageChanges` is all that it did to messages, and can be taken back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import attrs

from harness.model import Effects, Kind, Message, Model, Step, Telling, Value, parts, slot

NETWORK_SLOTS = ("inbox", "held")


@attrs.frozen(eq=False)
class SentMessage:
    """A message that was sent. `id` is the step that sent it and its place there: the same on every branch.

    That of a told message is the one that it was told with.
    """

    id: str
    message: Message
    sent_at: int
    place: int
    copy_of: str | None = None
    """For a duplicate: the id of the original."""
    reliable: bool = False
    """Whether it travels on a reliable link."""
    is_minor: bool = False
    """Whether it is left out where only what matters is shown."""


@attrs.frozen
class Fate:
    """What befell a message in flight: `dropped`, `lost`, `held`, `released` or `merged`; a told one is `delivered`."""

    sent: SentMessage
    how: str
    was_held: bool = False


@attrs.frozen
class MessageChanges:
    """What a step did to messages."""

    received: SentMessage | None = None
    was_held: bool = False
    sent: tuple[SentMessage, ...] = ()
    taken: tuple[Fate, ...] = ()


class MessagesInFlight:
    """The messages that are in flight in one state of a run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._open: dict[str, dict[SentMessage, bool]] = defaultdict(dict)
        """By destination: each message, and whether it is held."""

    def all(self) -> list[tuple[SentMessage, bool]]:
        """Return the messages, and whether each is held, in the order of their sending."""
        found = [pair for here in self._open.values() for pair in here.items()]
        return sorted(found, key=_age)

    def find(self, message: Message, held: bool = False) -> SentMessage | None:
        """Return the oldest send of this message, or None; preferably one that is held, or is not, as asked."""
        same = [(sent, is_held) for sent, is_held in self._open[message.dest].items() if sent.message == message]
        return next((sent for sent, is_held in same if is_held is held), same[0][0] if same else None)

    def start(self, state: Mapping[str, Value]) -> MessageChanges:
        """Note the messages in flight in the first state."""
        found = [
            message for address in self._model.addresses for messages in self._contents(address, state)
            for message in messages
        ]
        done = MessageChanges(sent=tuple(self._sent(0, k, message, None) for k, message in enumerate(found)))
        self.apply(done)
        return done

    def follow(self, n: int, step: Step, effects: Effects, after: Mapping[str, Value]) -> MessageChanges:
        """Note what step n does to messages, and return it. `after` is the state after it."""
        received, was_held, taken = self._consumed(step, effects)
        lost, held = Counter(effects.lost), Counter(effects.held)
        sent: list[SentMessage] = []
        for message in step.sent:
            original = self.find(message) if step.kind is Kind.FAULT else None
            one = self._sent(n, len(sent), message, original)
            sent.append(one)
            for how, which in (("lost", lost), ("held", held)):
                if which[message]:
                    which[message] -= 1
                    taken.append(Fate(one, how))
                    break
        self.apply(MessageChanges(received, was_held, tuple(sent), tuple(taken)))
        for name in dict(effects.writes):
            variable, *index = parts(name)
            if variable in NETWORK_SLOTS:
                self._reconcile(n, step, index[0], after, sent, taken)
        return MessageChanges(received, was_held, tuple(sent), tuple(taken))

    def tell(self, n: int, telling: Telling) -> MessageChanges:
        """Note the messages that step n tells of, and return what became of them."""
        sent = tuple(SentMessage(told.id, told.message, n, k, told.copy_of, True, told.is_minor)
                     for k, told in enumerate(telling.sent))
        self.apply(MessageChanges(sent=sent))
        under_way = {one.id: one for here in self._open.values() for one in here}
        taken = []
        for id_, how in telling.fates:
            one = under_way.get(id_)
            if one is not None and one in self._open[one.message.dest]:
                taken.append(Fate(one, how, self._open[one.message.dest][one]))
                self.apply(MessageChanges(taken=(taken[-1],)))
        return MessageChanges(None, False, sent, tuple(taken))

    def _sent(self, n: int, k: int, message: Message, original: SentMessage | None) -> SentMessage:
        """Return a message as the kth that is sent in step n, a copy of another one maybe."""
        is_reliable = self._model.routes.of(message).network.is_reliable
        return SentMessage(f"{n}.{k}", message, n, k, original.id if original is not None else None, is_reliable)

    def _consumed(self, step: Step, effects: Effects) -> tuple[SentMessage | None, bool, list[Fate]]:
        if step.action == "Release" and step.kind is Kind.HEAL:
            return None, False, self._released(step, effects)
        consumed = self.find(step.consumed) if step.consumed is not None else None
        if consumed is None:
            return None, False, []
        was_held = self._open[consumed.message.dest][consumed]
        if step.kind is not Kind.FAULT:
            return consumed, was_held, []
        return None, False, [Fate(consumed, "held" if step.action == "Delay" else "dropped", was_held)]

    def _released(self, step: Step, effects: Effects) -> list[Fate]:
        for name, _ in effects.writes:
            variable, *index = parts(name)
            if variable == "held":
                for sent, is_held in self._open[index[0]].items():
                    if is_held and sent.message.brief() == step.detail:
                        return [Fate(sent, "released", True)]
        return []

    def _reconcile(
        self, n: int, step: Step, address: str, state: Mapping[str, Value], sent: list[SentMessage], taken: list[Fate]
    ) -> None:
        """Make the messages to an address agree with what the state says is in flight to it."""
        wanted = Counter(message for messages in self._contents(address, state) for message in messages)
        here = self._open[address]
        known = Counter(one.message for one in here)
        if wanted == known:
            return
        for message in dict.fromkeys((*wanted, *known)):
            surplus = known[message] - wanted[message]
            same = [one for one in here if one.message == message]
            merged = surplus > 0 and message in step.sent
            for one in (same[-surplus:] if merged else same[: max(surplus, 0)]):
                fate = Fate(one, "merged" if merged else "lost", here[one])
                taken.append(fate)
                self.apply(MessageChanges(taken=(fate,)))
            for _ in range(-surplus):
                one = self._sent(n, len(sent), message, same[0] if same else None)
                sent.append(one)
                here[one] = False

    def _contents(self, address: str, state: Mapping[str, Value]) -> Iterator[tuple[Message, ...]]:
        for inbox in self._model.inboxes[address]:
            yield inbox.network.contents(state[inbox.slot])
        yield tuple(state.get(slot("held", address), ()))

    def apply(self, done: MessageChanges) -> None:
        """Do to the messages what a step does."""
        for sent in done.sent:
            self._open[sent.message.dest][sent] = False
        if done.received is not None:
            del self._open[done.received.message.dest][done.received]
        for fate in done.taken:
            here = self._open[fate.sent.message.dest]
            if fate.how in ("held", "released"):
                here[fate.sent] = fate.how == "held"
            else:
                del here[fate.sent]

    def take_back(self, done: MessageChanges) -> None:
        """Undo what a step did to the messages."""
        for fate in reversed(done.taken):
            self._put_back(fate.sent, fate.was_held)
        if done.received is not None:
            self._put_back(done.received, done.was_held)
        for sent in done.sent:
            del self._open[sent.message.dest][sent]

    def _put_back(self, sent: SentMessage, is_held: bool) -> None:
        """Put a message back to where it was: among equal ones the oldest is meant."""
        here = self._open[sent.message.dest]
        here[sent] = is_held
        self._open[sent.message.dest] = dict(sorted(here.items(), key=_age))


def _age(pair: tuple[SentMessage, bool]) -> tuple[int, int]:
    """Return what orders messages by their sending."""
    return pair[0].sent_at, pair[0].place
