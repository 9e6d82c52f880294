"""Each day's answers and inputs are compared with those of the first days after the promotion."""

from __future__ import annotations

from typing import Any

from deployments.guards.domain.answers.answer_metrics import AnswerKind
from deployments.health.selectors import health
from deployments.health.services import watch
from deployments.models import AnswerDay, Deployment, HealthRecord
from deployments.quality.services import observations
from portal.notifications.models import Notice
from tests.deployments.world import World

_DAY = 24 * 3600


def begun(world: World) -> Deployment:
    """Its stable revision was just taken up: its first day begins."""
    return world.play("its first day", lambda: _begin(world))


def _begin(world: World) -> Deployment:
    deployment = world.serving()
    watch.sweep()
    world.clock.move(900)
    watch.sweep()
    return deployment


def day(world: World, deployment: Deployment, kind: AnswerKind, values: list[Any]) -> None:
    """Values of one day, and the check at its end."""
    world.clock.move(3600)
    observations.post(
        actor=world.member,
        deployment_id=deployment.pk,
        revision_number=1,
        kind=kind,
        values=values,
    )
    world.clock.move(_DAY - 3600)
    watch.sweep()


def lines() -> list[tuple[str, str]]:
    return [(row.verdict, row.message) for row in HealthRecord.objects.order_by("id")]


def alerts() -> list[str]:
    return [notice.message for notice in Notice.objects.filter(event="deployment.health")]


def labels(cats: int, dogs: int) -> list[str]:
    return ["cat"] * cats + ["dog"] * dogs


def test_other_answers_than_after_the_promotion_are_reported_on_the_first_day(
    world: World,
) -> None:
    deployment = begun(world)
    day(world, deployment, AnswerKind.LABELS, labels(500, 500))
    day(world, deployment, AnswerKind.LABELS, labels(510, 490))
    day(world, deployment, AnswerKind.LABELS, labels(900, 100))
    day(world, deployment, AnswerKind.LABELS, labels(905, 95))

    assert lines() == [
        ("not known", "Labels of answers: the reference is being recorded"),
        ("ok", "Labels of answers: Jensen-Shannon distance 0.008, limit 0.15"),
        (
            "failed",
            "Labels of answers: Jensen-Shannon distance 0.375, limit 0.15, "
            "compared with the most similar of 2 reference days",
        ),
        (
            "ok",
            "Labels of answers: Jensen-Shannon distance 0.007, limit 0.15, "
            "compared with the most similar of 3 reference days",
        ),
    ]
    assert len(alerts()) == 1


def test_a_bad_day_after_the_reference_week_never_becomes_the_reference(world: World) -> None:
    deployment = begun(world)
    for _ in range(7):
        day(world, deployment, AnswerKind.INPUT_LENGTHS, [10] * 50 + [20] * 50)
    for _ in range(3):
        day(world, deployment, AnswerKind.INPUT_LENGTHS, [10] * 5 + [90] * 95)

    assert [verdict for verdict, _ in lines()] == ["not known", *["ok"] * 6, *["failed"] * 3]
    assert alerts() == [
        "Lengths of inputs: largest gap between distributions 0.950, limit 0.2, "
        "compared with the most similar of 7 reference days."
    ]
    assert AnswerDay.objects.count() == 7
    answers = health.view_of(deployment).answers
    assert [(str(row.kind), row.day.n) for row in answers] == [("input_lengths", 100)]


def test_a_weekend_that_is_like_the_first_one_is_no_drift(world: World) -> None:
    deployment = begun(world)
    week = [labels(500, 500)] * 5 + [labels(100, 900)] * 2
    for values in week:
        day(world, deployment, AnswerKind.LABELS, values)
    first = len(alerts())
    for values in week * 2:
        day(world, deployment, AnswerKind.LABELS, values)

    # The first weekend is new; later ones are like it.
    assert (first, len(alerts())) == (1, 1)


def test_few_values_are_not_judged(world: World) -> None:
    deployment = begun(world)
    day(world, deployment, AnswerKind.LABELS, labels(500, 500))
    day(world, deployment, AnswerKind.LABELS, labels(0, 99))

    assert lines()[-1] == ("not known", "Labels of answers: 99 of 100 values were posted")
    assert alerts() == []


def test_embeddings_that_move_away_are_reported(world: World) -> None:
    deployment = begun(world)
    near = [[1.0, n / 1000] for n in range(200)]
    far = [[0.5, 1 + n / 1000] for n in range(200)]
    day(world, deployment, AnswerKind.EMBEDDINGS, near)
    day(world, deployment, AnswerKind.EMBEDDINGS, near)
    day(world, deployment, AnswerKind.EMBEDDINGS, far)

    assert [verdict for verdict, _ in lines()] == ["not known", "ok", "failed"]


def test_days_without_a_check_are_caught_up(world: World) -> None:
    deployment = begun(world)
    for values in (labels(500, 500), labels(480, 520)):
        world.clock.move(3600)
        observations.post(
            actor=world.member,
            deployment_id=deployment.pk,
            revision_number=1,
            kind=AnswerKind.LABELS,
            values=values,
        )
        world.clock.move(_DAY - 3600)
    watch.sweep()

    assert AnswerDay.objects.count() == 2
    assert [verdict for verdict, _ in lines()] == ["ok"]
