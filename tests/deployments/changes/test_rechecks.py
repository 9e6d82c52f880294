"""The checks are repeated before a decision: changed results are shown, and refuse it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client

from deployments.changes.services import decisions, recheck, requests
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from fleet.kube.domain.errors import ObjectInvalid, Unreachable
from portal.accounts.models import Team, User
from portal.core.errors import Invalid, NotFound
from tests import page as pages
from tests.deployments.signed_in import HTMX, signed_in
from tests.deployments.world import World

__all__ = ["signed_in"]


@pytest.fixture
def change(world: World) -> ChangeRequest:
    return world.play(
        "requested", lambda: requests.request_deploy(actor=world.member, draft=world.draft())
    )


def approve(world: World, change: ChangeRequest) -> ChangeRequest:
    return decisions.approve(
        actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )


def lose_the_file(world: World) -> None:
    key = next(key for key in world.store.sizes if key.endswith("model.onnx"))
    del world.store.sizes[key]


def test_an_approval_is_refused_when_a_check_refuses_now_and_nothing_changes(
    world: World, change: ChangeRequest
) -> None:
    lose_the_file(world)

    with pytest.raises(Invalid, match="The serving repository differs from the verified file"):
        approve(world, change)

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert not Approval.objects.exists()
    assert world.cluster.writes == []


def test_checks_changed_since_the_request_are_shown_with_their_old_result(
    world: World, change: ChangeRequest
) -> None:
    Team.objects.update(monthly_budget_amount=Decimal(1))
    world.cluster.refuse["InferenceService"] = ObjectInvalid("no such runtime")

    rechecked = recheck.repeat(actor=world.lead, change_id=change.pk)

    changes = {one.name: (one.was, one.now.ok) for one in rechecked.changed}
    assert changes == {"Budget": (True, False), "Server dry-run": (True, False)}
    assert not rechecked.can_approve
    assert [check.name for check in rechecked.checks] == [
        row["name"] for row in change.checks if row["name"] != "Name"
    ]


def test_a_check_that_first_appears_later_is_a_change_unless_it_passes(
    world: World, change: ChangeRequest
) -> None:
    warning = "unknown annotation"
    world.cluster.warn["InferenceService"] = warning

    rechecked = recheck.repeat(actor=world.lead, change_id=change.pk)

    assert "Cluster warnings" not in {row["name"] for row in change.checks}
    (warned,) = rechecked.changed
    assert (warned.name, warned.was, warned.now.ok, warned.is_worse) == (
        "Cluster warnings",
        None,
        False,
        True,
    )
    assert warning in warned.now.detail
    assert rechecked.can_approve


def test_a_check_that_first_appears_later_and_passes_is_no_change(
    world: World, change: ChangeRequest
) -> None:
    ChangeRequest.objects.update(checks=[row for row in change.checks if row["name"] != "Quota"])

    rechecked = recheck.repeat(actor=world.lead, change_id=change.pk)

    assert "Quota" in {check.name for check in rechecked.checks}
    assert rechecked.changed == ()


def test_a_cluster_that_is_away_is_not_known_and_does_not_refuse(
    world: World, change: ChangeRequest
) -> None:
    world.cluster.fail_with = Unreachable("connection refused")

    approve(world, change)

    change.refresh_from_db()
    assert change.state == ChangeState.APPROVED


def test_an_approval_within_a_minute_of_a_recheck_does_not_query_the_cluster_again(
    world: World, change: ChangeRequest
) -> None:
    recheck.repeat(actor=world.lead, change_id=change.pk)
    before = len(world.cluster.calls)
    lose_the_file(world)

    approve(world, change)

    assert len(world.cluster.calls) == before


def test_an_older_recheck_is_ignored(world: World, change: ChangeRequest) -> None:
    recheck.repeat(actor=world.lead, change_id=change.pk)
    lose_the_file(world)
    world.clock.move(61)

    with pytest.raises(Invalid):
        approve(world, change)


def test_a_scaling_is_not_counted_on_top_of_what_it_replaces(world: World) -> None:
    deployment = world.serving(max_replicas=2)
    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=4
    )
    Team.objects.update(quota_gpus=4)

    rechecked = recheck.repeat(actor=world.lead, change_id=change.pk)

    quota = next(check for check in rechecked.checks if check.name == "Quota")
    assert (quota.ok, quota.detail) == (True, "4 of 4 GPUs of vision after this.")


def test_a_recheck_by_someone_who_does_not_decide_changes_nothing(
    world: World, change: ChangeRequest
) -> None:
    recheck.repeat(actor=world.viewer, change_id=change.pk)

    change.refresh_from_db()
    assert change.last_recheck == {}


def test_a_stranger_learns_nothing(world: World, change: ChangeRequest) -> None:
    with pytest.raises(NotFound):
        recheck.repeat(actor=world.stranger, change_id=change.pk)


def test_the_page_reloads_the_checks_and_shows_what_fails_now(
    world: World, change: ChangeRequest, signed_in: Callable[[User], Client]
) -> None:
    client, path = signed_in(world.lead), f"/approvals/{change.pk}"
    page = client.get(path).content.decode()
    lose_the_file(world)

    part = pages.page(client.get(f"{path}?checks=now", **HTMX, HTTP_HX_TARGET="checks-now"))

    assert f'hx-get="{path}?checks=now"' in page
    assert "at request time" in page
    assert not part.is_whole_page
    assert "Artifact fails now" in part.text
    assert "It cannot be approved until this is fixed." in part.text
    assert "Upload the file again as a new version" in part.text
    assert pages.page(client.get(f"{path}?checks=now")).is_whole_page


def test_the_api_gives_the_same_list(
    world: World, change: ChangeRequest, signed_in: Callable[[User], Client]
) -> None:
    lose_the_file(world)

    body = signed_in(world.lead).get(f"/api/v1/changes/{change.pk}/checks").json()

    assert body["can_approve"] is False
    assert [(one["name"], one["was"], one["now"]["ok"]) for one in body["changed"]] == [
        ("Artifact", True, False)
    ]
    assert all(
        set(check) == {"name", "ok", "detail", "fix", "is_blocking"} for check in body["checks"]
    )
