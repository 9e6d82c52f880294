"""Data that an older Slipway left behind is refused in one line, and left as it is."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from django.db.migrations.recorder import MigrationRecorder

from portal.accounts.models import Team
from portal.core.schema import history as migration_history
from slipway_demo import seed
from tests.accounts import make_team

_REPLACING = ("0001_schema", "0002_append_only", "0002_ledger_triggers")

pytestmark = pytest.mark.django_db


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Written by the start that made the database of the tests."""
    record = tmp_path / "migrations.json"
    applied = MigrationRecorder.Migration.objects.all()
    kept = list(applied.values("app", "name", "applied"))
    applied.delete()
    with mock.patch.object(seed, "call_command"):
        seed.migrate(record)
    MigrationRecorder.Migration.objects.bulk_create(
        MigrationRecorder.Migration(**row) for row in kept
    )
    return record


def test_data_of_this_version_is_migrated(record: Path) -> None:
    make_team(slug="vision")

    seed.migrate(record)

    assert Team.objects.get().slug == "vision"


def test_data_of_an_older_version_names_the_command_that_empties_it(record: Path) -> None:
    make_team(slug="vision")
    MigrationRecorder.Migration.objects.create(app="deployments", name="0016_stopped_pipelines")

    refuse(record)


def test_data_made_by_a_migration_that_has_changed_since_is_refused(record: Path) -> None:
    make_team(slug="vision")
    digests = json.loads(record.read_text())
    record.write_text(json.dumps({**digests, "deployments.0001_schema": "of another text"}))

    refuse(record)


def test_data_made_by_migrations_that_were_replaced_is_refused(record: Path) -> None:
    make_team(slug="vision")
    files = migration_history.read_files().values()
    replaced = {name for migration in files for name in migration.replaces}
    MigrationRecorder.Migration.objects.filter(name__in=_REPLACING).delete()
    record.write_text(json.dumps({f"{app}.{name}": "as it was then" for app, name in replaced}))

    refuse(record)


def test_data_without_a_record_is_refused(tmp_path: Path) -> None:
    make_team(slug="vision")

    refuse(tmp_path / "migrations.json")

    assert not (tmp_path / "migrations.json").exists()


def refuse(record: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        seed.migrate(record)

    assert refused.value.code == (
        "The data in var/ was created by an older Slipway. Run make demo-reset, then make demo."
    )
    assert Team.objects.get().slug == "vision"
