"""The fields that one ModelConfig states and another does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deployments.registry.domain.triton_config.text import Path

# Repeated messages that are told apart by a name; others by their place.
_NAMES: Final = {
    "input": "name",
    "output": "name",
    "control_input": "name",
    "state": "input_name",
    "model_warmup": "batch_size",
}
# An empty message of these has a meaning.
_CHOICES: Final = ("dynamic_batching", "sequence_batching", "ensemble_scheduling", "all")


def stated_only_by(one: Any, other: Any, path: Path = ()) -> Iterator[Path]:
    """Yield paths of fields that `one` sets and `other` does not, or to another value."""
    for field, value in one.ListFields():
        here = (*path, field.name)
        if not field.is_repeated:
            yield from _single(field, value, other, here)
        elif field.message_type is None:
            if list(value) != list(getattr(other, field.name)):
                yield here
        elif field.message_type.GetOptions().map_entry:
            yield from _entries(value, getattr(other, field.name), here)
        else:
            yield from _elements(field, value, getattr(other, field.name), here)


def _single(field: Any, value: Any, other: Any, path: Path) -> Iterator[Path]:
    if field.message_type is None:
        if value != getattr(other, field.name):
            yield path
    elif field.name in _CHOICES and not other.HasField(field.name):
        yield path
    else:
        yield from stated_only_by(value, getattr(other, field.name), path)


def _entries(entries: Any, others: Any, path: Path) -> Iterator[Path]:
    for key in sorted(entries):
        here = (*path, key)
        if key not in others:
            yield here
        elif hasattr(entries[key], "ListFields"):
            yield from stated_only_by(entries[key], others[key], here)
        elif entries[key] != others[key]:
            yield here


def _elements(field: Any, values: Any, others: Any, path: Path) -> Iterator[Path]:
    name = _NAMES.get(field.name, "")
    named = {getattr(other, name): other for other in others} if name else dict(enumerate(others))
    for index, value in enumerate(values):
        key = getattr(value, name) if name else index
        if key not in named:
            yield (*path, index)
        else:
            yield from stated_only_by(value, named[key], (*path, index))
