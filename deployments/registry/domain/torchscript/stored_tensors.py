"""The tensors that a pickle of PyTorch refers to: their bytes are in files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deployments.registry.domain.pickles.symbolic import Made

_STORAGE: Final = "storage"
# ("storage", class, key, device, number of elements)
_PARTS: Final = 5


def storages_in(value: Any) -> Iterator[tuple[str, int]]:
    """Yield the key of each file with its number of elements. A file that several tensors share is repeated."""
    pending, visited = [value], set[int]()
    while pending:
        item = pending.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        if storage := _storage(item):
            yield storage
        else:
            pending.extend(_parts_of(item))


def _storage(item: Any) -> tuple[str, int] | None:
    if not isinstance(item, Made) or item.maker != "persistent":
        return None
    (reference,) = item.arguments
    if not isinstance(reference, tuple) or len(reference) != _PARTS or reference[0] != _STORAGE:
        return None
    key, elements = reference[2], reference[4]
    return (key, elements) if isinstance(key, str) and isinstance(elements, int) else None


def _parts_of(item: Any) -> Iterator[Any]:
    if isinstance(item, Made):
        yield from (*item.arguments, item.state, item.items, item.entries)
    elif isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list | tuple):
        yield from item
