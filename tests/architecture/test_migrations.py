"""During an upgrade pods of the version before run on the migrated database: migrations only add.

What is no addition needs a class attribute on its Migration, and people read why:
`old_pods_go_on` = why pods of the version before stand it, or `downtime` = why they do not, which
CHANGELOG.md then repeats with the name of the migration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

ROOT = Path(__file__).resolve().parents[2]
# The migrations of the release before, as it has them.
OF_0_2_0 = {
    "audit.0002_events_refuse_changes",
    "deployments.0001_initial",
    "deployments.0002_version_former",
    "fleet.0001_initial",
    "fleet.0002_sealed_rows_refuse_changes",
    "notifications.0001_initial",
}
APPS = ("accounts", "audit", "deployments", "fleet", "notifications", "portal_api")


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
    """Without those that begin an app, stand for migrations that ran before, or lead from the release before to
    what replaces them: no pod meets them.
    """
    found = all_own_migrations()
    replaced = {f"{app}.{name}" for one in found.values() for app, name in one.replaces}
    return {
        name: migration
        for name, migration in found.items()
        if not (migration.initial or migration.replaces or name in replaced)
    }


def all_own_migrations() -> dict[str, Any]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {
        f"{app}.{name}": migration
        for (app, name), migration in loader.disk_migrations.items()
        if app in APPS
    }


def test_migrations_only_add_or_say_what_they_do() -> None:
    found = {name: undeclared(migration) for name, migration in own_migrations().items()}

    assert {name: problems for name, problems in found.items() if problems} == {}


def test_every_app_with_tables_is_looked_at() -> None:
    own = ("portal", "deployments", "fleet")
    with_tables = {
        one.label for one in apps.get_app_configs() if one.name.split(".")[0] in own and one.models
    }

    assert with_tables == set(APPS)
    assert {name.partition(".")[0] for name in all_own_migrations()} == set(APPS)


def test_what_is_replaced_leads_from_the_release_before_without_its_pods() -> None:
    """A replaced migration without a file would leave that database without an upgrade."""
    migrations_of_apps = all_own_migrations()
    replaced = [
        f"{app}.{name}" for one in migrations_of_apps.values() for app, name in one.replaces
    ]

    assert len(replaced) == len(set(replaced)) == 17
    assert set(replaced) <= set(migrations_of_apps)
    silent = {name for name in replaced if undeclared(migrations_of_apps[name])}
    assert silent <= OF_0_2_0


def test_the_guide_says_that_pods_of_0_2_0_are_stopped() -> None:
    guide = " ".join((ROOT / "docs/install.md").read_text().split())

    assert "From 0.2.0" in guide
    assert "scale all Deployments of the portal to zero" in guide


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
