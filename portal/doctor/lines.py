"""The lines that a check of the installation reports, each with its fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """NOTE: works, but should be known or improved. UNKNOWN: could not be checked."""

    OK = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Line:
    """A result of a check. `fix` is empty only where nothing has to be done."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def ok(name: str, detail: str) -> Line:
    return Line(name, Status.OK, detail)


def note(name: str, detail: str, fix: str) -> Line:
    return Line(name, Status.NOTE, detail, fix)


def report_unknown(name: str, detail: str, fix: str) -> Line:
    return Line(name, Status.UNKNOWN, detail, fix)


def report_failed(name: str, detail: str, fix: str) -> Line:
    return Line(name, Status.FAILED, detail, fix)
