"""Databases whose migrations were replaced by fresh ones: all applied, some, or none."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from portal.core.schema import history as migration_history
from tests.accounts import make_team

pytestmark = pytest.mark.django_db


def recorded() -> set[tuple[str, str]]:
    return set(MigrationRecorder.Migration.objects.values_list("app", "name"))


def migrate(**options: bool) -> str:
    """As from the command line, which runs the checks of the database first."""
    said = io.StringIO()
    call_command("migrate", skip_checks=False, stdout=said, no_color=True, **options)
    return said.getvalue()


def record_the_chain_of_before() -> None:
    executor = MigrationExecutor(connection)
    replacing = [key for key, one in executor.loader.graph.nodes.items() if one.replaces]
    assert len(replacing) == 8
    for app, name in replacing:
        executor.recorder.record_unapplied(app, name)


def test_a_database_with_all_that_was_replaced_is_current() -> None:
    make_team(slug="vision")
    before = recorded()
    record_the_chain_of_before()

    assert migrate(check_unapplied=True) == ""
    assert "No migrations to apply." in migrate()

    assert recorded() == before
    assert migrate(check_unapplied=True) == ""


def test_a_database_with_a_part_of_it_is_refused_and_left_as_it_is() -> None:
    record_the_chain_of_before()
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("fleet", "0023_device_taints")
    recorder.record_unapplied("fleet", "0024_scrape_readings")
    before = recorded()

    with pytest.raises(SystemCheckError) as refused:
        migrate()

    assert (
        "(slipway.E003) The database has 17 of the 19 migrations that fleet.0001_schema replaces, "
        "not fleet.0023_device_taints."
    ) in str(refused.value)
    assert (
        "HINT: Run `manage.py migrate` with the version before this one, which has 0023_device_taints.py, "
        "then with this one."
    ) in str(refused.value)
    assert recorded() == before


def test_an_app_without_any_of_it_is_created() -> None:
    executor = MigrationExecutor(connection)
    for app, name in recorded():
        if app == "notifications":
            executor.recorder.record_unapplied(app, name)
    executor.loader.build_graph()

    files, left = migration_history.read_files(), migration_history.read_recorded(connection)
    assert migration_history.half_replaced(files, left) == []
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    assert [str(one) for one, _ in plan] == ["notifications.0001_schema"]
