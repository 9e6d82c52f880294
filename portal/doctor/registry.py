"""The checks of an installation, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from portal.doctor.lines import Line

Run = Callable[[], Iterable[Line]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one part of the installation. `fix` is what to do when the part does not answer at all."""

    area: str
    name: str
    fix: str
    run: Run


# In the order of the report: what others depend on comes first.
AREAS: Final = (
    "settings",
    "database",
    "audit trail",
    "broker",
    "workers",
    "bucket",
    "clusters",
    "e-mail",
    "sign-in",
    "prices",
)
_CHECKS: Final[list[Check]] = []


def check(area: str, name: str, *, fix: str) -> Callable[[Run], Run]:
    """Register a function that yields lines. It may raise what its part raises when it does not answer."""

    def register(run: Run) -> Run:
        _CHECKS.append(Check(area, name, fix, run))
        return run

    return register


def all_checks() -> tuple[Check, ...]:
    return tuple(sorted(_CHECKS, key=lambda check: AREAS.index(check.area)))
