"""Which deployments serve a version, read without those that do not."""

from __future__ import annotations

from typing import Any

from deployments.models import Deployment, Revision
from deployments.registry.selectors import versions
from deployments.states import DeploymentState
from portal.core import clock
from tests.deployments.world import World


def _deployment(world: World, name: str, version: Any, *additional: tuple[str, int]) -> Deployment:
    row = Deployment.objects.create(
        team=world.team,
        cluster_id=world.cluster_id,
        name=name,
        namespace="vision",
        created_by=world.member,
        created_at=clock.now(),
        state=DeploymentState.READY,
    )
    spec = world.draft(name).spec.to_json()
    assert spec["additional_models"] == []
    spec["additional_models"] = [{"model": m, "version": n} for m, n in additional]
    row.stable_revision = Revision.objects.create(
        deployment=row,
        number=1,
        version=version,
        spec=spec,
        created_by=world.member,
        created_at=clock.now(),
    )
    row.save()
    return row


def test_a_version_names_what_serves_it_alone_or_beside_others(
    world: World, django_assert_num_queries: Any
) -> None:
    one, two = world.version1, world.version2
    alone = _deployment(world, "alone", one)
    beside = _deployment(world, "beside", one, ("detector", 2))
    _deployment(world, "other", one, ("classifier", 1))

    with django_assert_num_queries(2):
        serving = versions.deployments_serving([two.pk])

    assert serving == {two.pk: [beside]}
    assert versions.deployments_serving([one.pk])[one.pk][0] == alone
    assert len(versions.deployments_serving([one.pk])[one.pk]) == 3


def test_deployments_of_other_versions_are_not_loaded(
    world: World, django_assert_num_queries: Any
) -> None:
    """Each revision has the field; an empty one serves nothing more."""
    for number in range(3):
        _deployment(world, f"d{number}", world.version1)

    # Nothing serves several models, so no second query reads their names.
    with django_assert_num_queries(1) as captured:
        assert versions.deployments_serving([world.version2.pk]) == {}

    (query,) = captured.captured_queries
    assert _row_count(query["sql"]) == 0


def _row_count(sql: str) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        return len(cursor.fetchall())
