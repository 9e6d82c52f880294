"""The refusal of an uploaded file, raised by whatever reads it, and how it quotes the file."""

from __future__ import annotations


class NotServable(Exception):
    """The file cannot be served; the message says why and how to fix it."""


def printable(text: str | bytes) -> str:
    """What a file says, without what a page or a database would trip over. Protobuf gives bytes for
    what is not UTF-8.
    """
    decoded = text.decode(errors="replace") if isinstance(text, bytes) else text
    return "".join(char if char.isprintable() else "�" for char in decoded)


def quoted(text: str | bytes, *, longest: int = 60) -> str:
    """For messages, bounded."""
    plain = printable(text)
    return f"“{plain[:longest]}{'…' if len(plain) > longest else ''}”"
