"""The error for an uploaded file that cannot be served, and quoting for its message."""

from __future__ import annotations


class NotServable(Exception):
    """The file cannot be served; the message says why and how to fix it."""


class NeedsDeclaration(NotServable):
    """The file does not state what serving needs; the message says what the uploader has to declare."""


def printable(text: str | bytes) -> str:
    """Return text from a file without unprintable characters. Protobuf returns bytes for invalid UTF-8."""
    decoded = text.decode(errors="replace") if isinstance(text, bytes) else text
    return "".join(char if char.isprintable() else "�" for char in decoded)


def quote(text: str | bytes, *, longest: int = 60) -> str:
    """Return the text in quotes, truncated to `longest` characters."""
    plain = printable(text)
    return f"“{plain[:longest]}{'…' if len(plain) > longest else ''}”"
