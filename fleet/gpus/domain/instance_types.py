"""Names of instance types: g5.12xlarge is size 12xlarge of family g5."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def nearest(name: str, known: Collection[str]) -> str:
    """The known type with the most similar name, for hints about typing errors."""
    plain = name.strip().lower().replace("_", ".")

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(a=plain, b=other, autojunk=False).ratio()

    return max(sorted(known), key=likeness)
