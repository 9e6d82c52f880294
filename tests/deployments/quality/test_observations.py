"""What services post of their answers, and what the evidence of a rollout makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.guards.domain.answers.answer_metrics import AnswerKind
from deployments.models import Deployment, EmbeddingReference, QualityObservation, Rollout
from deployments.quality.services import observations
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.deployments import canaries
from tests.deployments.golden_requests import guards_for
from tests.deployments.world import World


def post(
    world: World, deployment: Deployment, number: int, kind: AnswerKind, values: list[Any]
) -> observations.Posted:
    return observations.post(
        actor=world.member,
        deployment_id=deployment.pk,
        revision_number=number,
        kind=kind,
        values=values,
    )


def guard_of(rollout: Rollout, name: str) -> Any:
    return next(guard for guard in guards_for(rollout) if guard.guard == name)


def test_batches_of_one_minute_are_one_row(world: World) -> None:
    deployment = world.serving()

    for _ in range(3):
        post(world, deployment, 1, AnswerKind.LABELS, ["cat", "cat", "dog"])
        world.clock.move(25)
    post(world, deployment, 1, AnswerKind.LABELS, ["dog"])

    rows = QualityObservation.objects.order_by("id")
    assert [(row.n, row.counts) for row in rows] == [
        (9, {"cat": 6, "dog": 3}),
        (1, {"dog": 1}),
    ]


def test_a_shift_of_labels_stops_the_rollout(world: World) -> None:
    deployment, rollout = canaries.start(world)
    assert guards_for(rollout) == ()

    post(world, deployment, 1, AnswerKind.LABELS, ["cat", "dog"] * 100)
    post(world, deployment, 2, AnswerKind.LABELS, ["cat"] * 200)

    assert guard_of(rollout, "Label distribution").verdict == "not enough data", "still open"
    world.clock.move(300)

    guard = guard_of(rollout, "Label distribution")
    assert (guard.verdict, guard.stable, guard.candidate) == ("fail", "dog 50%", "cat 100%")
    canaries.soak(world, deployment, 5)
    rollout.refresh_from_db()
    assert rollout.phase in ("aborting", "aborted")
    assert "label distribution" in rollout.events.get(kind="aborting").message.lower()


def test_a_plan_may_switch_a_guard_off_and_limits_are_its_own(world: World) -> None:
    deployment, rollout = canaries.start(world)
    post(world, deployment, 1, AnswerKind.LABELS, ["cat", "dog"] * 100)
    post(world, deployment, 2, AnswerKind.LABELS, ["cat"] * 200)
    world.clock.move(300)

    rollout.plan = {"quality": {"label_drift": 1.0}}
    assert guard_of(rollout, "Label distribution").verdict == "pass"
    rollout.plan = {"quality": {"label_drift": None}}
    assert guards_for(rollout) == ()


def test_a_day_that_changes_for_both_sides_is_no_drift(world: World) -> None:
    """Stable has a thousand values in each window, the candidate fifty: cats first, then dogs."""
    deployment, rollout = canaries.start(world)
    for animal in ("cat", "cat", "dog", "dog"):
        post(world, deployment, 1, AnswerKind.LABELS, [animal] * 1000)
        post(world, deployment, 2, AnswerKind.LABELS, [animal] * 50)
        world.clock.move(300)

    guard = guard_of(rollout, "Label distribution")

    assert (guard.verdict, guard.stable, guard.candidate) == ("pass", "dog 50%", "dog 50%")
    assert guard.n == 200


def test_once_stable_gets_nothing_its_hour_before_is_compared(world: World) -> None:
    deployment, rollout = canaries.start(world)
    post(world, deployment, 1, AnswerKind.LABELS, ["cat", "dog"] * 100)
    world.clock.move(300)
    rollout.reference = {"until": world.clock.at.isoformat()}
    rollout.step_started_at = world.clock.at
    post(world, deployment, 2, AnswerKind.LABELS, ["cat"] * 200)
    world.clock.move(300)

    guard = guard_of(rollout, "Label distribution")

    assert (guard.verdict, guard.stable, guard.candidate) == ("fail", "dog 50%", "cat 100%")


def test_observations_of_stable_only_are_not_enough_data(world: World) -> None:
    deployment, rollout = canaries.start(world)
    post(world, deployment, 1, AnswerKind.STRUCTURED, [True] * 500)

    guard = guard_of(rollout, "Structured output")

    assert (guard.verdict, guard.n) == ("not enough data", 0)


def test_observations_before_the_rollout_do_not_count(world: World) -> None:
    deployment = world.serving()
    post(world, deployment, 1, AnswerKind.LENGTHS, [10] * 500)
    world.clock.move(1)

    _, rollout = _second(world, deployment)

    assert guards_for(rollout) == ()


def _second(world: World, deployment: Deployment) -> tuple[Deployment, Rollout]:
    from deployments.changes.services import requests

    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=canaries.STEPS,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    return deployment, Rollout.objects.get()


def test_the_first_vectors_of_a_revision_are_its_reference_set(world: World) -> None:
    deployment, rollout = canaries.start(world)

    first = post(world, deployment, 1, AnswerKind.EMBEDDINGS, [[1.0, 0.0]] * 40)
    early = post(world, deployment, 2, AnswerKind.EMBEDDINGS, [[1.0, 0.0]] * 10)
    second = post(world, deployment, 1, AnswerKind.EMBEDDINGS, [[1.0, 0.0]] * 124)
    assert (first.reference_n, early.reference_n, second.reference_n) == (40, 10, 24)
    # Before stable's set was complete, there was nothing to compare the candidate with.
    assert list(QualityObservation.objects.values_list("revision__number", "n")) == [(1, 100)]

    post(world, deployment, 2, AnswerKind.EMBEDDINGS, [[0.0, 1.0]] * 100)
    world.clock.move(300)
    guard = guard_of(rollout, "Embedding drift")
    assert (guard.verdict, guard.message) == (
        "fail",
        "cosine distance of means 1.000, statistically significant",
    )
    assert (guard.stable, guard.candidate) == ("0.000 from reference", "1.000 from reference")
    sizes = EmbeddingReference.objects.order_by("revision__number").values_list("n", flat=True)
    assert list(sizes) == [64, 64]


@pytest.mark.parametrize(("who", "refusal"), [("viewer", Forbidden), ("stranger", NotFound)])
def test_others_post_nothing(world: World, who: str, refusal: type[Exception]) -> None:
    deployment = world.serving()

    with pytest.raises(refusal):
        observations.post(
            actor=getattr(world, who),
            deployment_id=deployment.pk,
            revision_number=1,
            kind=AnswerKind.LABELS,
            values=["cat"],
        )

    assert not QualityObservation.objects.exists()


def test_what_does_not_serve_and_what_does_not_fit_is_refused(world: World) -> None:
    deployment = world.serving()
    post(world, deployment, 1, AnswerKind.EMBEDDINGS, [[1.0, 0.0]])

    with pytest.raises(Invalid, match="is not serving"):
        post(world, deployment, 2, AnswerKind.LABELS, ["cat"])
    with pytest.raises(Invalid, match="cannot be compared"):
        post(world, deployment, 1, AnswerKind.EMBEDDINGS, [[1.0, 0.0, 0.0]])
    with pytest.raises(Invalid):
        post(world, deployment, 1, AnswerKind.LENGTHS, ["long"])

    assert not QualityObservation.objects.exists()
    assert EmbeddingReference.objects.get().n == 1
