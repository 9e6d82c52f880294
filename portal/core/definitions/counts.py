"""Counts in messages: "1 GPU", "4 GPUs"."""

from __future__ import annotations


def format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
