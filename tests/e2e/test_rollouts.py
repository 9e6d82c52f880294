"""Canaries under load: a good one is promoted without one failed request, bad ones are stopped.

The deployment asks callers for a key, so every request here passes with one.

The same scenes at full length, with 20,000 requests, are `make bench NAME=rollout`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import callers
from tests.e2e.canaries import Scene, is_share_inside_band
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person
from tests.fixtures.onnx_models import Kind
from tests.waiting import wait_for

GOOD = Kind(rounds=4)


def steps(*weights: int, min_requests: int = 50) -> list[dict[str, Any]]:
    return [{"weight": w, "soak_seconds": 0, "min_requests": min_requests} for w in weights]


@pytest.fixture(scope="module")
def scene(
    demo: DemoProcess, member: Person, lead: Person, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    scene = Scene(demo, member, lead, Path(tmp_path_factory.mktemp("canaries")))
    scene.begin(GOOD, network={"access": "keys"})
    key = callers.make_key(scene, "load-test")
    scene.headers = callers.headers_of(key["key"])
    assert callers.seconds_until(scene, callers.ANSWERED, key) < callers.PROMISED_SECONDS
    yield scene
    scene.retire()


def test_a_good_one_is_promoted_step_by_step_and_no_request_fails(scene: Scene) -> None:
    good = scene.upload("good", Kind(rounds=GOOD.rounds, note="v2"))

    with scene.load(30) as load:
        weights = scene.promote_through(scene.start(good, steps(25, 50)), [25, 50])

    assert [shown["requested_weight"] for shown in weights] == [25, 50]
    assert all(is_share_inside_band(shown) for shown in weights), weights
    assert load.counted.failures == {}
    assert load.counted.answered == load.counted.sent > 100


def test_a_candidate_with_some_errors_is_aborted_automatically_with_the_reason(
    scene: Scene,
) -> None:
    bad = scene.upload("errs", Kind(rounds=GOOD.rounds, fails_on_mark=True))

    with scene.load(60, marked_share=0.2):
        rollout_id = scene.start(bad, steps(25, min_requests=5_000))
        ended = scene.wait_for_phase(rollout_id, "aborted")

    assert "requests failed" in ended["phase_reason"]
    assert ended["requested_weight"] == 0


def test_one_with_hardly_any_requests_is_neither_promoted_nor_aborted(scene: Scene) -> None:
    starved = scene.upload("starved", Kind(rounds=GOOD.rounds, note="v5"))
    rollout_id = scene.start(starved, steps(50))

    with scene.load(1):
        shown = wait_for("first counts", lambda: counted(scene, rollout_id))

    assert shown["phase"] == "running"
    assert not shown["is_promotable"]
    assert "of 50 requests" in shown["promotable_reason"]
    refused = scene.lead.http.post(
        f"rollouts/{rollout_id}/promote", json={"evidence_hash": shown["evidence_hash"]}
    )
    assert refused.status_code == 409, refused.text
    scene.abort(rollout_id, "no traffic today")
    scene.wait_for_phase(rollout_id, "aborted")


def test_keys_decide_who_is_answered_and_both_revisions_answer_to_the_same_key(
    scene: Scene,
) -> None:
    """While a canary splits the traffic: without a key, with one, rotated with overlap, revoked, limited.
    What both keys of the caller were answered is what the portal counts for it.
    """
    other = scene.upload("other", Kind(rounds=GOOD.rounds, drift=0.2))
    rollout_id = scene.start(other, steps(50, min_requests=5_000))
    wait_for("split", lambda: scene.read_rollout(rollout_id)["observed_weight"] == 50)

    def answers(key: dict[str, Any]) -> tuple[set[int], set[str]]:
        got = [callers.ask(scene, callers.headers_of(key["key"])) for _ in range(30)]
        return {status for status, _ in got}, {text for _, text in got}

    refused = [
        callers.ask(scene, headers)[0]
        for headers in (None, {"x-api-key": "slc_guess"}, {"slipway-caller": "billing.1"})
    ]
    old = callers.make_key(scene, "billing")
    accepted_after = callers.seconds_until(scene, callers.ANSWERED, old)
    new = callers.change_key(scene, old, "rotate", overlap_hours=1)
    renewed_after = callers.seconds_until(scene, callers.ANSWERED, new)
    both = [answers(key) for key in (old, new)]
    callers.change_key(scene, old, "revoke")
    revoked_after = callers.seconds_until(scene, callers.NO_KEY, old)
    kept = answers(new)
    limited_after = callers.seconds_until_limited(scene, new, 5)
    counted = [callers.ask(scene, callers.headers_of(new["key"]))[0] for _ in range(40)]
    unlimited = callers.ask(scene, scene.headers)[0]
    scene.abort(rollout_id, "seen enough")
    scene.wait_for_phase(rollout_id, "aborted")
    sent = scene.answered[old["key"]] + scene.answered[new["key"]]
    wait_for("all are counted", lambda: callers.requests_counted(scene, "billing") >= sent)

    assert callers.requests_counted(scene, "billing") == sent > 90
    assert refused == [callers.NO_KEY] * 3
    assert both[0] == both[1] == kept
    assert kept[0] == {callers.ANSWERED}
    assert len(kept[1]) == 2, "answers of both revisions"
    assert set(counted) <= {callers.ANSWERED, callers.OVER_LIMIT}
    # The minute may end meanwhile.
    assert counted.count(callers.ANSWERED) <= 10
    assert unlimited == callers.ANSWERED
    seconds = [accepted_after, renewed_after, revoked_after, limited_after]
    assert max(seconds) < callers.PROMISED_SECONDS, seconds


def test_one_whose_answers_drift_is_stopped_before_it_gets_a_request(scene: Scene) -> None:
    drifting = scene.upload("drifts", Kind(rounds=GOOD.rounds, drift=0.2))

    with scene.golden_request(), scene.load(20) as load:
        ended = scene.wait_for_phase(scene.start(drifting, steps(25)), "aborted")

    assert "quarters" in ended["phase_reason"]
    assert not ended["candidate_requests"]
    assert load.counted.failures == {}


def counted(scene: Scene, rollout_id: int) -> dict[str, Any] | None:
    rollout = scene.read_rollout(rollout_id)
    return rollout if rollout["candidate_requests"] else None
