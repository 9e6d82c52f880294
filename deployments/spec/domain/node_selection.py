"""The nodes that take pods, as text: labels that a node must have ("name=value, name=value"), taints that pods
tolerate, as kubectl writes taints ("key=value:Effect, key:Effect"), and instance types ("name, name").
"""

from __future__ import annotations

import re
from typing import Final

from fleet.gpus.domain.tolerations import Toleration

INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
# Any value of the label: Azure writes Standard_NC24ads_A100_v4.
INSTANCE_TYPE: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,38}[A-Za-z0-9])?"
_MOST_ENTRIES: Final = 10
MOST_OTHER_TYPES: Final = 5
_LABEL: Final = re.compile(
    r"(?P<name>([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
    r"=(?P<value>[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
)
# Other settings choose them.
CHOSEN_ELSEWHERE: Final = frozenset(
    {
        INSTANCE_TYPE_LABEL,
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/capacityType",
    }
)
_TAINT: Final = re.compile(
    r"(?P<key>([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
    r"(=(?P<value>[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?))?"
    r":(?P<effect>NoSchedule|NoExecute)"
)


def read_labels(text: str) -> dict[str, str]:
    """Read labels, sorted by name. Raises ValueError for text that is no list of labels, for too many, for a
    name that comes twice, and for a label that another setting chooses.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    labels: dict[str, str] = {}
    for part in parts:
        match = _LABEL.fullmatch(part)
        if match is None or match["name"] in labels:
            raise ValueError("not labels of nodes")
        labels[match["name"]] = match["value"]
    if len(labels) > _MOST_ENTRIES or labels.keys() & CHOSEN_ELSEWHERE:
        raise ValueError("not labels that can be asked for")
    return dict(sorted(labels.items()))


def normalized_labels(text: str) -> str:
    """Normalise labels: the same labels are always the same text."""
    return ", ".join(f"{name}={value}" for name, value in read_labels(text).items())


def split_types(text: str) -> tuple[str, ...]:
    """Return the instance types in their order. Raises ValueError for what is none, for too many, and for one that
    comes twice.
    """
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if len(names) > MOST_OTHER_TYPES or len(set(names)) < len(names):
        raise ValueError("too many instance types, or one twice")
    if any(not re.fullmatch(INSTANCE_TYPE, name) for name in names):
        raise ValueError("not instance types")
    return names


def normalized_types(text: str) -> str:
    """Normalise instance types: the same types are always the same text."""
    return ", ".join(split_types(text))


def split_taints(text: str) -> tuple[str, ...]:
    """Return each taint once, sorted. Raises ValueError for what is none, and for too many."""
    taints = sorted({part.strip() for part in text.split(",") if part.strip()})
    if len(taints) > _MOST_ENTRIES or any(not _TAINT.fullmatch(taint) for taint in taints):
        raise ValueError("not taints")
    return tuple(taints)


def normalized_taints(text: str) -> str:
    """Normalise taints: the same taints are always the same text."""
    return ", ".join(split_taints(text))


def read_tolerations(text: str) -> tuple[Toleration, ...]:
    """Read the tolerations of a pod or a claim. Without a value, every value of the key is tolerated."""
    matches = (_TAINT.fullmatch(taint) for taint in split_taints(text))
    return tuple(Toleration(m["key"], m["effect"], m["value"]) for m in matches if m is not None)
