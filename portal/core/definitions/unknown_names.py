"""The message for a field that does not exist: its name and the nearest one that does."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 60


def describe(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name[:LONGEST], list(known), n=1)
    hint = f'Did you mean "{nearest[0]}"?' if nearest else "Remove it."
    return f'There is no field "{name[:LONGEST]}". {hint}'
