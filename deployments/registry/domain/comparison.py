"""Compare two versions, one row per fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from deployments.registry.domain.metadata import version_metadata
from deployments.registry.domain.signatures import ANY, Signature
from portal.core.definitions.figures import MINUS, format_figure, format_percent

# Metrics that are equal in as many are the same: training writes 0.1 as 0.09999999999999998.
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """A fact of two versions as text. `change` is what a number changed by, and `is_better` whether the right side's
    is better; None is not known. `exact` are the numbers of which the texts are rounded.
    """

    name: str
    left: str
    right: str
    change: str = ""
    is_better: bool | None = None
    exact: tuple[str, str] = ("", "")

    @property
    def is_different(self) -> bool:
        return self.left != self.right or self.exact[0] != self.exact[1]

    @property
    def verdict(self) -> str:
        if not self.is_different:
            return "same"
        if self.is_better is None:
            return "differs"
        return "better" if self.is_better else "worse"


@dataclass(frozen=True, slots=True)
class NumberPair:
    """A number of two versions. None is not known, and so is which direction is better."""

    name: str
    left: float | None
    right: float | None
    is_higher_better: bool | None = None


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


def compare_numbers(
    pairs: Iterable[NumberPair], describe: Callable[[float], str]
) -> list[ComparedFact]:
    """Compare numbers that `describe` writes with their unit. Pairs without any number are left out."""
    return [
        replace(
            _compare_pair(pair, describe),
            change=_describe_ratio(pair.left, pair.right),
            exact=(_text(pair.left), _text(pair.right)),
        )
        for pair in pairs
        if not (pair.left is None and pair.right is None)
    ]


def compare_metrics(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[ComparedFact]:
    """Compare the metrics in the metadata of two versions: accuracy first, then alphabetical."""
    old, new = version_metadata.metrics_of(left), version_metadata.metrics_of(right)
    pairs = [
        NumberPair(
            name,
            old.get(name),
            new.get(name),
            version_metadata.is_higher_better(right if name in new else left, name),
        )
        for name in version_metadata.metric_names((left, right))
    ]
    return [_compare_metric(pair) for pair in pairs]


def _compare_metric(pair: NumberPair) -> ComparedFact:
    fact = _compare_pair(pair, lambda value: format_figure(value, _DIGITS))
    if fact.left == fact.right:
        return replace(fact, is_better=None)
    exact = (_text(pair.left), _text(pair.right))
    return replace(fact, change=_describe_change(pair), exact=exact)


def _compare_pair(pair: NumberPair, describe: Callable[[float], str]) -> ComparedFact:
    left, right = pair.left, pair.right
    is_better = None
    if left is not None and right is not None and left != right:
        is_higher = right > left
        is_better = None if pair.is_higher_better is None else is_higher == pair.is_higher_better
    return ComparedFact(
        pair.name,
        "" if left is None else describe(left),
        "" if right is None else describe(right),
        is_better=is_better,
    )


def _describe_change(pair: NumberPair) -> str:
    """Describe a change, such as "+0.05 (+5.6%)". Empty without one, or without a number on either side."""
    if pair.left is None or pair.right is None or pair.left == pair.right:
        return ""
    sign = "+" if pair.right > pair.left else MINUS
    amount = f"{sign}{format_figure(abs(pair.right - pair.left), 3)}"
    ratio = _describe_ratio(pair.left, pair.right)
    return f"{amount} ({ratio})" if ratio else amount


def _describe_ratio(left: float | None, right: float | None) -> str:
    if not left or right is None or left == right:
        return ""
    sign = "+" if right > left else MINUS
    return f"{sign}{format_percent(abs((right - left) / left))}"


def truncate(facts: Sequence[ComparedFact], count: int) -> tuple[list[ComparedFact], int]:
    """Return at most `count` facts, differences first, and the number of omitted ones."""
    if len(facts) <= count:
        return list(facts), 0
    return sorted(facts, key=lambda fact: not fact.is_different)[:count], len(facts) - count


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)
