"""During an upgrade pods of the version before run on the migrated database: migrations only add.

What is no addition needs a class attribute on its Migration, and people read why:
`old_pods_go_on` = why pods of the version before stand it, or `downtime` = why they do not, which
CHANGELOG.md then repeats with the name of the migration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

ROOT = Path(__file__).resolve().parents[2]
APPS = ("accounts", "audit", "core", "deployments", "fleet", "notifications")
# Of 0.2.0, which nobody runs: there is no version before it.
BEFORE_THE_RULE = {
    "audit.0002_events_refuse_changes",
    "deployments.0002_search_indexes",
    "fleet.0002_sealed_rows_refuse_changes",
    "fleet.0003_workload_metrics_path",
    "fleet.0004_ledger_days",
    "fleet.0005_ledger_rows_add_to_days",
    "fleet.0008_node_health",
    "fleet.0009_ledger_months",
}


def problem_with(operation: Operation, created: set[str]) -> str:
    """Why pods of the version before may fail on it; empty: they do not. `created`: tables that they do not know."""
    name = str(getattr(operation, "model_name", "") or getattr(operation, "name", "")).lower()
    what = f"{type(operation).__name__} {name}"
    match operation:
        case migrations.CreateModel():
            return ""
        case _ if name in created:
            return ""
        case migrations.AddField(field=field):
            is_left_out = field.null or field.has_db_default() or field.many_to_many
            return "" if is_left_out else f"{what}.{operation.name}: null=True or db_default"
        case migrations.AddIndex() | migrations.AlterModelOptions():
            return ""
    return what


def problems_of(migration: Any) -> list[str]:
    operations = migration.operations
    created = {one.name.lower() for one in operations if isinstance(one, migrations.CreateModel)}
    found = [problem_with(operation, created) for operation in operations]
    return [problem for problem in found if problem]


def undeclared(migration: Any) -> list[str]:
    reasons = [getattr(migration, name, "") for name in ("old_pods_go_on", "downtime")]
    return [] if any(reasons) else problems_of(migration)


def own_migrations() -> dict[str, Any]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {
        f"{app}.{name}": migration
        for (app, name), migration in loader.disk_migrations.items()
        if app in APPS and not name.startswith("0001")
    }


def test_migrations_only_add_or_say_what_they_do() -> None:
    found = {name: undeclared(migration) for name, migration in own_migrations().items()}

    assert {
        n: problems for n, problems in found.items() if problems and n not in BEFORE_THE_RULE
    } == {}
    assert [name for name in BEFORE_THE_RULE if not found.get(name)] == []


def test_a_release_that_needs_downtime_says_so_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    needing = [name for name, one in own_migrations().items() if getattr(one, "downtime", "")]

    assert [name for name in needing if name not in changelog] == []


@pytest.mark.parametrize(
    ("operation", "is_addition"),
    [
        (migrations.CreateModel("New", []), True),
        (migrations.AddField("old", "x", models.TextField(null=True)), True),
        (migrations.AddField("old", "x", models.TextField(default="", db_default="")), True),
        # The default is Python's: pods of the version before leave the column out.
        (migrations.AddField("old", "x", models.TextField(default="")), False),
        (migrations.AddField("new", "x", models.TextField()), True),
        (migrations.AddIndex("old", models.Index(fields=["x"], name="i")), True),
        (migrations.AddConstraint("old", models.UniqueConstraint(fields=["x"], name="u")), False),
        (migrations.AddConstraint("new", models.UniqueConstraint(fields=["x"], name="u")), True),
        (migrations.AlterField("old", "x", models.TextField(null=True)), False),
        (migrations.RemoveField("old", "x"), False),
        (migrations.RenameField("old", "x", "y"), False),
        (migrations.DeleteModel("Old"), False),
        (migrations.RunPython(migrations.RunPython.noop), False),
        (migrations.RunSQL("SELECT 1"), False),
    ],
    ids=range(14),
)
def test_what_counts_as_an_addition(operation: Operation, is_addition: bool) -> None:
    assert (problem_with(operation, {"new"}) == "") is is_addition


def test_a_reason_is_needed_and_enough() -> None:
    class Silent(migrations.Migration):
        operations = [migrations.RemoveField("old", "x")]

    class Explained(Silent):
        old_pods_go_on = "no release since 0.3 reads it"

    assert undeclared(Silent("0090", "fleet")) == ["RemoveField old"]
    assert undeclared(Explained("0090", "fleet")) == []
