"""The whole matrix: each transition function from each state, legal and illegal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from deployments.models import Model, ModelVersion
from deployments.registry.domain.scanning.releases import Release
from deployments.registry.services import transitions
from deployments.states import VERSION, VersionState
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease
from tests.deployments.uploading import People

pytestmark = pytest.mark.django_db
Move = Callable[[ModelVersion, Lease], None]

MOVES: dict[str, tuple[VersionState, Move]] = {
    "to_verifying": (
        VersionState.VERIFYING,
        lambda v, lease: transitions.to_verifying(version=v, actor=SYSTEM),
    ),
    "to_ready": (
        VersionState.READY,
        lambda v, lease: transitions.to_ready(version=v, lease=lease, facts={}),
    ),
    "to_quarantined": (
        VersionState.QUARANTINED,
        lambda v, lease: transitions.to_quarantined(version=v, lease=lease, facts={}, reason="r"),
    ),
    "to_failed": (
        VersionState.FAILED,
        lambda v, lease: transitions.to_failed(version=v, reason="r", lease=lease),
    ),
    "to_archived": (
        VersionState.ARCHIVED,
        lambda v, lease: transitions.to_archived(version=v, actor=SYSTEM, reason="r"),
    ),
    "to_restored": (
        VersionState.READY,
        lambda v, lease: transitions.to_restored(version=v, actor=SYSTEM),
    ),
    # Without a serving repository its verification continues.
    "to_released": (
        VersionState.VERIFYING,
        lambda v, lease: transitions.to_released(
            version=v, actor=SYSTEM, release=Release("admin", "r", clock.now() + timedelta(days=1))
        ),
    ),
}
SOURCES = {
    "to_verifying": {"uploading"},
    "to_ready": {"verifying"},
    "to_quarantined": {"verifying", "ready"},
    "to_failed": {"uploading", "verifying"},
    "to_archived": {"ready", "quarantined"},
    "to_restored": {"archived"},
    "to_released": {"quarantined"},
}


def version_in(people: People, state: VersionState) -> ModelVersion:
    at = clock.now()
    model = Model.objects.create(
        team=people.team, name="m", created_by=people.member, created_at=at, changed_at=at
    )
    return ModelVersion.objects.create(
        model=model,
        number=1,
        state=state,
        filename="m.onnx",
        declared_size_bytes=1,
        bucket="b",
        upload_prefix="k/",
        created_by=people.member,
        created_at=at,
    )


@pytest.mark.parametrize("state", list(VersionState))
@pytest.mark.parametrize("name", list(MOVES))
def test_a_move_happens_once_where_it_is_legal_and_nowhere_else(
    people: People, name: str, state: VersionState
) -> None:
    version = version_in(people, state)
    target, move = MOVES[name]
    lease = leases.claim(ModelVersion, version.pk)
    assert lease is not None

    if state in SOURCES[name]:
        assert target in VERSION[state]
        move(version, lease)
        assert ModelVersion.objects.get().state == target
        assert AuditEvent.objects.count() == 1
    else:
        with pytest.raises(Conflict):
            move(version, lease)
        assert ModelVersion.objects.get().state == state
        assert AuditEvent.objects.count() == 0


def test_a_stale_copy_of_the_row_moves_nothing(people: People) -> None:
    version = version_in(people, VersionState.READY)
    ModelVersion.objects.update(state=VersionState.ARCHIVED)

    with pytest.raises(Conflict, match="is archived now"):
        transitions.to_archived(version=version, actor=SYSTEM, reason="")


def test_a_worker_that_lost_its_lease_writes_nothing(people: People) -> None:
    version = version_in(people, VersionState.VERIFYING)
    lease = leases.claim(ModelVersion, version.pk)
    assert lease is not None
    ModelVersion.objects.update(lease_token="another worker")

    with pytest.raises(Conflict):
        transitions.to_ready(version=version, lease=lease, facts={"sha256": "f" * 64})

    assert ModelVersion.objects.get().sha256 == ""
