"""Reading an item, deciding, and writing if nobody was quicker: how everything here changes.

Each write of a head leaves a mark nobody else ever leaves (`writer`), and is made only over the
mark that was seen.  A write whose answer was lost is recognised by its mark when the item is read
again, so that it is neither lost nor made twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from turnline.store.dynamodb.items import Item, Key, text
from turnline.store.dynamodb.table import Conflict, Table, Write

T = TypeVar("T")

# Marks that outlive other writes: of who opened a turn, and of who claimed a session.
MARKS = ("writer", "opened", "claim")
_LONGEST_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """What was decided.

    Attributes:
        result: what the operation gives once `writes` are made.
        writes: all or nothing; empty: there is nothing to write.
    """

    result: T
    writes: Sequence[Write] = ()


def over(seen: Item | None, key: Key, item: Item | None) -> Write:
    """Write a head over the one that was seen; None for `item` removes it."""
    names = {"#w": "writer"}
    if seen is None:
        return Write(key=key, item=item, condition="attribute_not_exists(#w)", names=names)
    values = {":w": seen["writer"]}
    return Write(key=key, item=item, condition="#w = :w", names=names, values=values)


async def settle(
    table: Table, key: Key, decide: Callable[[Item | None, str], Awaitable[Step[T]]]
) -> T:
    """Carry an operation on a head through, as one.

    Args:
        decide: given the head, None if there is none, and the mark to write; called again when
            somebody else wrote in between.
    """
    made: dict[str, T] = {}
    tries = 0
    async with table.deadline():
        while True:
            head = await table.get(key)
            if head is not None:
                for name in MARKS:
                    mark = text(head, name)
                    if mark in made:
                        return made[mark]
            writer = table.new_id()
            step = await decide(head, writer)
            if not step.writes:
                return step.result
            made[writer] = step.result
            try:
                await table.write(step.writes)
            except Conflict:
                await table.pause(tries, longest=_LONGEST_PAUSE_SECONDS)
                tries += 1
            else:
                return step.result
