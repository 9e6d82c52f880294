"""Label selectors: as the query of a listing, and as other objects state them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A label's value, or several of which one must be it.
Labels = Mapping[str, str | Sequence[str]]


def query_of(labels: Labels | None) -> list[tuple[str, str]]:
    if not labels:
        return []
    terms = [
        f"{key}={value}" if isinstance(value, str) else f"{key} in ({','.join(value)})"
        for key, value in labels.items()
    ]
    return [("labelSelector", ",".join(terms))]


@dataclass(frozen=True, slots=True)
class Expression:
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A LabelSelector of the Kubernetes API; without expressions it selects everything."""

    expressions: tuple[Expression, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> LabelSelector:
        equal = sorted((raw.get("matchLabels") or {}).items())
        listed = raw.get("matchExpressions") or ()
        return cls(
            (
                *(Expression(key, "In", (value,)) for key, value in equal),
                *(
                    Expression(item["key"], item["operator"], tuple(item.get("values") or ()))
                    for item in listed
                ),
            )
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(expression.matches(labels) for expression in self.expressions)

    def find_fewest_labels(self) -> dict[str, str] | None:
        """Return the fewest labels that the selector matches. None if none can be found."""
        labels: dict[str, str] = {}
        for expression in self.expressions:
            if expression.matches(labels):
                continue
            if expression.operator == "In" and expression.values:
                labels.setdefault(expression.key, expression.values[0])
            elif expression.operator == "Exists":
                labels.setdefault(expression.key, "true")
        return labels if self.matches(labels) else None
