"""Labels of nodes that pods ask for, as text: "name=value, name=value"."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 10
_LABEL: Final = re.compile(
    r"(?P<name>([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
    r"=(?P<value>[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
)
# Other settings choose them.
CHOSEN_ELSEWHERE: Final = frozenset(
    {
        "node.kubernetes.io/instance-type",
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/capacityType",
    }
)


def read(text: str) -> dict[str, str]:
    """By name, sorted. Raises ValueError for what is no list of labels, and for a name that comes twice."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    labels: dict[str, str] = {}
    for part in parts:
        match = _LABEL.fullmatch(part)
        if match is None or match["name"] in labels:
            raise ValueError("not labels of nodes")
        labels[match["name"]] = match["value"]
    if len(labels) > _MOST or labels.keys() & CHOSEN_ELSEWHERE:
        raise ValueError("not labels that can be asked for")
    return dict(sorted(labels.items()))


def normalized(text: str) -> str:
    """The same labels always as the same text."""
    return ", ".join(f"{name}={value}" for name, value in read(text).items())
