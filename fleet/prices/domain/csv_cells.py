"""Text in the cells of a CSV file that people open in a spreadsheet."""

from __future__ import annotations

from typing import Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def quote_formula(text: str) -> str:
    """Quote text that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
