"""Choose the fields of an unsent form that may be stored: none that may hold a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Free texts of names and values, in which people put passwords.
FREE_TEXTS: Final = ("env", "triton_parameters")
# An address with a password: redis://:secret@cache:6379.
_PASSWORD: Final = re.compile(r"//[^\s/@]*@|\A[^\s/@]*:[^\s/@]*@")
# The form has some 130 short fields and a comment of 2,000 characters.
MAX_LENGTH: Final = 60_000


def split_fields(fields: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the fields that may be stored, and the names of those that are left out.

    Nobody types NUL, and PostgreSQL does not store it.
    """
    kept: dict[str, str] = {}
    left_out: list[str] = []
    without_nul = {
        name: text.replace("\0", "") for name, text in fields.items() if "\0" not in name
    }
    for name, text in without_nul.items():
        may_hold_secret = name in FREE_TEXTS or bool(_PASSWORD.search(text))
        if not may_hold_secret:
            kept[name] = text
        elif text.strip():
            left_out.append(name)
    return kept, left_out


def is_too_long(fields: Mapping[str, str]) -> bool:
    return sum(len(name) + len(text) for name, text in fields.items()) > MAX_LENGTH
