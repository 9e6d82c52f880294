"""Data that an older Slipway left behind is refused in one line, and left as it is."""

from __future__ import annotations

import pytest
from django.db.migrations.recorder import MigrationRecorder

from portal.accounts.models import Team
from portal.management.demo import seed
from tests.accounts import make_team

pytestmark = pytest.mark.django_db


def test_data_of_this_version_is_migrated() -> None:
    make_team(slug="vision")

    seed.migrate()

    assert Team.objects.get().slug == "vision"


def test_data_of_an_older_version_names_the_command_that_empties_it() -> None:
    make_team(slug="vision")
    MigrationRecorder.Migration.objects.create(app="deployments", name="0016_stopped_pipelines")

    with pytest.raises(SystemExit) as refused:
        seed.migrate()

    assert refused.value.code == (
        "The data in var/ was created by an older Slipway. Run make demo-reset, then make demo."
    )
    assert Team.objects.get().slug == "vision"
