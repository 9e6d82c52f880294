"""Compare two versions, one row per fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.registry.domain.signatures import ANY, Signature


@dataclass(frozen=True, slots=True)
class ComparedFact:
    name: str
    left: str
    right: str

    @property
    def is_different(self) -> bool:
        return self.left != self.right


def list_facts(signature: Signature) -> dict[str, str]:
    """Return the facts of a signature as text by name. Empty if the file was not read."""
    facts = {}
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        for tensor in tensors:
            dims = ", ".join("any" if dim == ANY else str(dim) for dim in tensor.dims)
            facts[f"{kind} {tensor.name}"] = f"{tensor.dtype} [{dims}]"
    if facts:
        facts["max batch size"] = str(signature.max_batch_size)
    for name in ("parameter_count", "tree_count", "producer"):
        if name in signature.facts:
            facts[name.replace("_", " ")] = str(signature.facts[name])
    for domain, number in sorted(signature.facts.get("opset", {}).items()):
        facts[f"opset {domain}"] = str(number)
    return facts


def compare(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[ComparedFact]:
    """Compare in the order of the left side, followed by names that only the right side has."""
    names = [*left, *(name for name in right if name not in left)]
    return [ComparedFact(n, _text(left.get(n)), _text(right.get(n))) for n in names]


def truncate(facts: Sequence[ComparedFact], count: int) -> tuple[list[ComparedFact], int]:
    """Return at most `count` facts, differences first, and the number of omitted ones."""
    if len(facts) <= count:
        return list(facts), 0
    return sorted(facts, key=lambda fact: not fact.is_different)[:count], len(facts) - count


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)
