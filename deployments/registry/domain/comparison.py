"""Two versions side by side, one row per fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_FIRST: Final = ("accuracy", "dataset_version", "trained_at", "framework", "commit", "run_url")


@dataclass(frozen=True, slots=True)
class ComparedFact:
    name: str
    left: str
    right: str

    @property
    def is_different(self) -> bool:
        return self.left != self.right


def facts_of(signature: Mapping[str, Any]) -> dict[str, str]:
    """A signature as named lines of text."""
    facts = {}
    for kind in ("inputs", "outputs"):
        for tensor in signature.get(kind, []):
            dims = ", ".join("any" if dim < 0 else str(dim) for dim in tensor["dims"])
            facts[f"{kind[:-1]} {tensor['name']}"] = f"{tensor['dtype']} [{dims}]"
    for name in ("max_batch_size", "parameter_count", "producer"):
        if name in signature:
            facts[name.replace("_", " ")] = str(signature[name])
    for domain, number in sorted(signature.get("opset", {}).items()):
        facts[f"opset {domain}"] = str(number)
    return facts


def compare(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[ComparedFact]:
    """Names in the order of the left side, then what only the right side has."""
    names = [*left, *(name for name in right if name not in left)]
    return [ComparedFact(n, _text(left.get(n)), _text(right.get(n))) for n in names]


def shortened(facts: Sequence[ComparedFact], most: int) -> tuple[list[ComparedFact], int]:
    """So many of them, differences first when there are more, and how many are left out."""
    if len(facts) <= most:
        return list(facts), 0
    return sorted(facts, key=lambda fact: not fact.is_different)[:most], len(facts) - most


def in_order(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that everyone states first; a JSON column does not keep an order."""
    first = [key for key in _FIRST if key in metadata]
    others = sorted(key for key in metadata if key not in _FIRST)
    return {key: metadata[key] for key in [*first, *others]}


def numeric_keys(metadata: list[Mapping[str, Any]]) -> list[str]:
    """Keys that hold a number in at least one of them, accuracy first, then by name."""
    keys = {
        key
        for stated in metadata
        for key, value in stated.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return sorted(keys, key=lambda key: (key != "accuracy", key))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)
