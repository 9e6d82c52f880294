"""Names of instance types: g5.12xlarge is size 12xlarge of family g5."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Final

LABEL: Final = "node.kubernetes.io/instance-type"
_LONGEST: Final = 40


def name_of(labels: Mapping[str, str], product: str) -> str:
    """A machine of one's own often has no instance type; its GPUs are what it is priced by."""
    return labels.get(LABEL) or product[:_LONGEST]


def is_requestable(instance_type: str, product: str, labels: Mapping[str, str]) -> bool:
    """Whether pods can require the node: a selector needs the label, and a product is none."""
    return bool(labels.get(LABEL)) or instance_type not in ("", product[:_LONGEST])


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known type with the most similar name, for hints about typing errors."""
    plain = name.strip().lower().replace("_", ".")

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(a=plain, b=other, autojunk=False).ratio()

    return max(sorted(known), key=likeness)
