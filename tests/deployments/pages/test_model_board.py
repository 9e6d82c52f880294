"""The environments of a model as a board, and the history of its rollouts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client

from deployments.models import ChangeRequest, Deployment, Revision, Rollout
from deployments.pages.selectors import model_board
from deployments.rollouts.services import actions
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.canaries import start
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]
MODEL = "/vision/models/detector"


def board_of(client: Client) -> Part:
    return page(client.get(MODEL)).part("environments")


def columns_of(board: Part) -> dict[str, str]:
    return {
        next(column.all("h3")).text: column.text
        for column in board.all("section")
        if list(column.all("h3"))
    }


def test_each_environment_is_a_column_in_its_order(world: World, signed_in: SignIn) -> None:
    world.serving(environment="staging")

    columns = columns_of(board_of(signed_in(world.member)))

    assert list(columns) == ["Development", "Staging", "Production"]
    assert columns["Development"].endswith("Nothing serves here")
    assert columns["Production"].endswith("Nothing serves here")
    assert columns["Staging"].startswith("Staging detector Ready Version 1 ")
    assert world.member.display_name in columns["Staging"]


def test_what_serves_in_staging_can_be_promoted_by_those_who_may_request(
    world: World, signed_in: SignIn
) -> None:
    world.serving(environment="staging")

    assert (
        board_of(signed_in(world.member)).link("Promote to production")
        == "/vision/deployments/detector/promote"
    )
    seen = board_of(signed_in(world.viewer))
    assert "Promote to production" not in seen.links
    assert "detector" in seen.links


def test_a_version_that_serves_in_production_is_not_promoted_again(
    world: World, signed_in: SignIn
) -> None:
    world.serving(environment="staging")
    world.serving(name="live")

    board = board_of(signed_in(world.member))

    assert "Promote to production" not in board.links
    assert "Version 1 serves in production" in columns_of(board)["Staging"]


def test_a_canary_shows_both_versions_and_is_not_promoted(world: World, signed_in: SignIn) -> None:
    start(world, environment="staging")

    staging = columns_of(board_of(signed_in(world.member)))["Staging"]

    assert "Version 1 → 2" in staging
    assert "Canary 10%" in staging
    assert "A change is under way" in staging


def test_a_model_beside_another_is_on_the_board(world: World) -> None:
    deployment = world.serving()
    revision = Revision.objects.get(deployment=deployment)
    spec = {**revision.spec, "additional_models": [{"model": "added", "version": 3}]}
    Revision.objects.update(spec=spec)
    added = world.version1.model
    added.pk, added.name = None, "added"
    added.save()

    *_, production = model_board.build_board(actor=world.member, model=added)

    assert [(card.row.name, card.version) for card in production.cards] == [("detector", 3)]


def test_a_model_that_serves_nowhere_has_no_board(world: World, signed_in: SignIn) -> None:
    shown = page(signed_in(world.member).get(MODEL))

    assert "Environments" not in shown.text
    assert "Rollouts" not in shown.text


def test_the_history_says_from_what_to_what_by_whom_and_how_long(
    world: World, signed_in: SignIn
) -> None:
    _, rollout = start(world, environment="staging")
    Rollout.objects.update(created_at=clock.now() - timedelta(minutes=5))
    running = page(signed_in(world.viewer).get(MODEL)).part("rollouts")
    actions.abort(actor=world.member, rollout_id=rollout.pk, reason="too slow")
    Rollout.objects.update(phase="aborted", finished_at=clock.now() - timedelta(minutes=2))

    aborted = page(signed_in(world.viewer).get(MODEL)).part("rollouts")

    assert running.rows == [
        {
            "Deployment": "detector staging",
            "From → to": "1 → 2 r1 → r2",
            "Result": "Running Soaking for 1 min more",
            "By": world.member.display_name,
            "Duration": "5 min so far",
            "Started": "5 min ago",
        }
    ]
    (row,) = aborted.rows
    assert row["Result"] == "Aborted Too slow"
    assert row["Duration"] == "3 min"


def test_the_newest_rollouts_are_first_20_a_page_in_as_many_queries(
    world: World, signed_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    deployment, rollout = start(world)
    copy_rollouts(deployment, rollout, 24)
    client = signed_in(world.viewer)

    with django_assert_max_num_queries(32):
        first = page(client.get(MODEL)).part("rollouts")
    second = page(client.get(f"{MODEL}?rollouts=2")).part("rollouts")

    assert (len(first.rows), len(second.rows)) == (20, 5)
    assert first.rows[0]["Result"] == "Completed"
    assert second.rows[-1]["Result"].startswith("Running")


def copy_rollouts(deployment: Deployment, rollout: Rollout, count: int) -> None:
    """Add rollouts that ended after this one."""
    change, rollout.phase_reason = rollout.change, ""
    for _ in range(count):
        change.pk, change.state = None, "done"
        change.save(force_insert=True)
        rollout.pk, rollout.change, rollout.phase = None, change, "completed"
        rollout.finished_at = clock.now()
        rollout.save(force_insert=True)
        change = ChangeRequest.objects.get(pk=change.pk)
