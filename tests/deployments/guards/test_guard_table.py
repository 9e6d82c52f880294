"""docs/evidence.md lists the guards that are registered, each with its limits and its test."""

from __future__ import annotations

from pathlib import Path

from deployments.guards.domain import catalogue, guard_set
from deployments.guards.domain.families.protocol import GuardKind
from portal.core.definitions import fields_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "evidence.md"
HEADER = "| guard | in a plan | source | limits | test |"
# Of every guard, or of the row and not of the limit.
_OTHERS = ("metric", "name", "query", "dry_run")


def row(kind: GuardKind) -> str:
    names = [name for name in fields_of(guard_set.LIMITS[kind.reads]) if name not in _OTHERS]
    if not getattr(kind, "has_max", True):
        names.remove("max")
    if not getattr(kind, "has_ratio", True):
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


def test_names_and_labels_are_distinct() -> None:
    """A plan finds a guard by its name, and a page its line by the label."""
    kinds = catalogue.KINDS

    assert len({kind.name for kind in kinds}) == len(kinds)
    assert len({kind.label.lower() for kind in kinds}) == len(kinds)
