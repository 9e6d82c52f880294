"""docs/evidence.md lists the guards that are registered, each with its limits and its test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from deployments.guards.domain import catalogue, guard_set
from deployments.guards.domain.families.protocol import GuardKind
from deployments.guards.domain.limits import GuardLimit
from portal.core.definitions import fields_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "evidence.md"
HEADER = "| guard | in a plan | source | limits | test |"
# Of every guard, or of the row and not of the limit.
_OTHERS = ("metric", "name", "query", "dry_run")


def row(kind: GuardKind) -> str:
    names = [name for name in fields_of(guard_set.LIMITS[kind.reads]) if name not in _OTHERS]
    if not getattr(kind, "has_max", True):
        names.remove("max")
    if getattr(kind, "not_compared", ""):
        names = [name for name in names if name not in ("max_ratio", "ignore_below")]
    unit = "0 to 1" if kind.unit == "ratio" else kind.unit or "its own unit"
    limits = ", ".join(f"`{name}`" for name in names)
    return (
        f"| {kind.label} | `{kind.name}` | {kind.source} | {limits} ({unit}) "
        f"| {kind.describe_test} |"
    )


def test_the_table_of_guards_is_the_catalogue() -> None:
    lines = DOCUMENT.read_text().splitlines()
    begins = lines.index(HEADER) + 2
    rows = [row(kind) for kind in catalogue.KINDS]

    assert lines[begins : begins + len(rows) + 1] == [*rows, ""], "\n".join(rows)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("gpu_utilisation", "it depends on the traffic weight"),
        ("gpu_memory", "a peak grows with the time that a revision serves"),
    ],
)
def test_a_guard_without_a_ratio_says_why(metric: str, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        GuardLimit(metric=metric, max_ratio=1.5)

    assert (
        f"{metric} is not compared with stable: {reason}. Give a max, not a max_ratio."
        in refused.value.errors()[0]["msg"]
    )
    assert GuardLimit(metric=metric, max=0.9).max_ratio is None


def test_names_and_labels_are_distinct() -> None:
    """A plan finds a guard by its name, and a page its line by the label."""
    kinds = catalogue.KINDS

    assert len({kind.name for kind in kinds}) == len(kinds)
    assert len({kind.label.lower() for kind in kinds}) == len(kinds)
