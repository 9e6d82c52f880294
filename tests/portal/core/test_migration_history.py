"""Databases whose migrations were replaced by fresh ones: with all of them on record, some, or none."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from tests.accounts import make_team

pytestmark = pytest.mark.django_db


def recorded() -> set[tuple[str, str]]:
    return set(MigrationRecorder.Migration.objects.values_list("app", "name"))


def migrate(**options: bool) -> str:
    """As from the command line, which runs the checks of the database first."""
    said = io.StringIO()
    call_command("migrate", skip_checks=False, stdout=said, no_color=True, **options)
    return said.getvalue()


def replacing() -> dict[tuple[str, str], list[tuple[str, str]]]:
    nodes = MigrationExecutor(connection).loader.graph.nodes
    return {key: one.replaces for key, one in nodes.items() if one.replaces}


def test_a_database_with_all_that_was_replaced_is_current() -> None:
    make_team(slug="vision")
    before = recorded()
    assert len(replacing()) == 7
    for app, name in replacing():
        MigrationRecorder(connection).record_unapplied(app, name)

    assert migrate(check_unapplied=True) == ""
    assert "No migrations to apply." in migrate()

    assert recorded() == before


def test_what_was_applied_before_it_replaced_more_is_current() -> None:
    """A database of a commit before the path from 0.2.0: it has the tables, and other names on record."""
    make_team(slug="vision")
    before = recorded()
    recorder = MigrationRecorder(connection)
    for app, name in [old for names in replacing().values() for old in names]:
        recorder.record_unapplied(app, name)
    recorder.record_applied("accounts", "0001_initial")
    recorder.record_applied("accounts", "0002_provisioning")

    assert "No migrations to apply." in migrate()

    assert recorded() == {*before, ("accounts", "0002_provisioning")}


def test_a_database_between_two_releases_is_refused_and_left_as_it_is() -> None:
    recorder = MigrationRecorder(connection)
    for app, name in [("fleet", "0001_schema"), ("fleet", "0003_upgrade_from_0_2_0")]:
        recorder.record_unapplied(app, name)
    recorder.record_unapplied("fleet", "0002_ledger_triggers")
    recorder.record_applied("fleet", "0003_workload_metrics_path")
    before = recorded()

    with pytest.raises(SystemCheckError) as refused:
        migrate()

    assert (
        "(slipway.E003) The database was made between two releases: it has fleet.0003_workload_metrics_path, which no "
        "release has."
    ) in str(refused.value)
    assert ("HINT: Migrate a database of the release before, or begin with an empty one.") in str(
        refused.value
    )
    assert recorded() == before


def test_an_app_without_any_of_it_is_created() -> None:
    executor = MigrationExecutor(connection)
    for app, name in recorded():
        if app == "notifications":
            executor.recorder.record_unapplied(app, name)
    executor.loader.build_graph()

    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())

    assert [str(one) for one, _ in plan] == ["notifications.0001_schema"]
