"""No candidate gets a user's request before it answered the golden requests within tolerance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.guards.domain.evidence import Verdict
from deployments.models import ChangeRequest, GoldenResult, GoldenRun
from deployments.quality.selectors import quality
from deployments.quality.services import golden_requests, golden_runs
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from tests.deployments.golden_requests import (
    begin,
    double,
    guards_for,
    metadata,
    run,
    save,
    served,
    sweep,
    weight,
)
from tests.deployments.world import World


def routed(world: World) -> dict[str, int]:
    return world.cluster.weights("vision", "detector")


def test_a_good_candidate_waits_for_its_answers_and_then_gets_traffic(world: World) -> None:
    save(world, "one", 1.0, 2.0)
    save(world, "two", 2.0, 4.0)
    deployment, pods = served(world, r2=lambda x: 2 * x + 0.0005)

    rollout = begin(world, deployment)

    assert (rollout.phase, weight(deployment)) == ("preparing", 0)
    assert rollout.phase_reason == (
        "before traffic: golden requests run once the candidate is ready"
    )
    rollout = sweep(world, deployment)
    assert (rollout.phase, weight(deployment)) == ("running", 10)
    before_traffic = quality.before_traffic(rollout=rollout)
    assert (before_traffic.verdict, before_traffic.message) == (
        Verdict.PASSED,
        "2 of 2 golden requests passed",
    )
    assert before_traffic.signature_message == "inputs and outputs match the file"
    assert sorted(pods.requests) == [(1, 1.0), (1, 2.0), (2, 1.0), (2, 2.0)]
    row = before_traffic.rows[0]
    assert row.against_expected[0].largest_absolute == pytest.approx(0.0005)
    assert row.against_stable[0].is_within


def test_a_candidate_that_answers_wrongly_is_stopped_before_any_traffic(world: World) -> None:
    save(world, "one", 1.0, 2.0)
    save(world, "two", 2.0, 4.0)
    deployment, _ = served(world, r2=lambda x: 2 * x + 0.25)

    begin(world, deployment)
    rollout = sweep(world, deployment)

    assert rollout.phase in ("aborting", "aborted")
    assert weight(deployment) == 0
    assert "detector-r2-predictor" not in routed(world)
    assert not rollout.events.filter(kind="running").exists()
    message = rollout.events.get(kind="aborting").message
    assert message == (
        "aborted: before traffic: 2 of 2 golden requests failed: one: "
        "y: element 1 of 1 is 2.25, expected 2: off by 0.25, allowed 0.0021"
    )
    row = quality.before_traffic(rollout=rollout).rows[0]
    assert row.against_stable[0].largest_absolute == 0.25


def test_an_unreachable_candidate_is_not_known_and_waits_until_it_answers(world: World) -> None:
    save(world)
    deployment, pods = served(world)

    begin(world, deployment)
    rollout = sweep(world, deployment)

    assert (rollout.phase, weight(deployment)) == ("preparing", 0)
    assert rollout.phase_reason == (
        "before traffic: unknown: the candidate did not respond to golden requests: "
        "pod detector-r2-0 cannot be reached"
    )
    pods.answers[2] = double
    rollout = sweep(world, deployment, seconds=30)
    assert (rollout.phase, weight(deployment)) == ("running", 10)


def test_a_network_policy_that_keeps_the_api_server_out_is_named_with_its_fix(world: World) -> None:
    save(world)
    deployment, _ = served(world)
    why = "Network policies do not admit the API server at 10.0.1.7"
    probed = Capabilities.from_json(Cluster.objects.get().capabilities)
    features = {**probed.features, "pod-proxy": Feature(is_there=False, why=why)}
    Cluster.objects.update(capabilities=replace(probed, features=features).to_json())

    begin(world, deployment)
    rollout = sweep(world, deployment)

    assert rollout.phase_reason.endswith(
        "pod detector-r2-0 cannot be reached. Network policies do not admit the API server at "
        "10.0.1.7: add its networks to the serving policy of the cluster"
    )


def test_a_server_that_is_not_up_is_not_known_but_a_refusal_of_the_model_is_wrong(
    world: World,
) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    pods.status = 503

    begin(world, deployment)
    rollout = sweep(world, deployment)
    assert rollout.phase_reason.endswith("pod detector-r2-0 returned HTTP 503")

    pods.status = 500
    rollout = sweep(world, deployment, seconds=30)
    assert rollout.phase in ("aborting", "aborted")
    assert GoldenResult.objects.get().message == ("the model returned HTTP 500: the GPU is on fire")


def test_a_crash_between_two_requests_repeats_none_that_was_recorded(world: World) -> None:
    for name, x in (("one", 1.0), ("two", 2.0), ("three", 3.0)):
        save(world, name, x, 2 * x)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    pods.crash_before = 2

    with pytest.raises(KeyboardInterrupt):
        golden_runs.sweep()
    assert [row.verdict for row in GoldenResult.objects.all()] == ["pass", "waiting", "waiting"]
    rollout = sweep(world, deployment)
    assert (rollout.phase, weight(deployment)) == ("preparing", 0)

    rollout = sweep(world, deployment, seconds=61)
    assert (rollout.phase, run().verdict, weight(deployment)) == ("running", "pass", 10)
    assert sorted(pods.requests) == [(1, 1.0), (1, 2.0), (1, 3.0), (2, 1.0), (2, 2.0), (2, 3.0)]


def test_a_signature_other_than_the_files_stops_the_rollout(world: World) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    pods.metadata = metadata() | {"outputs": [{"name": "y", "datatype": "INT64", "shape": [-1, 1]}]}

    begin(world, deployment)
    rollout = sweep(world, deployment)

    assert rollout.phase in ("aborting", "aborted")
    assert run().message == "signature: output y is INT64 at the server, FP32 in the file"
    assert weight(deployment) == 0


def test_without_stable_the_comparison_is_left_out_after_a_few_attempts(world: World) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    del pods.answers[1]

    begin(world, deployment)
    for _ in range(3):
        rollout = sweep(world, deployment, seconds=30)

    assert rollout.phase == "running"
    row = quality.before_traffic(rollout=rollout).rows[0]
    assert (row.verdict, row.against_stable) == (Verdict.PASSED, ())
    assert row.stable_message == "stable did not respond: pod detector-r1-0 cannot be reached"


def test_without_golden_requests_nothing_waits_and_nothing_is_sent(world: World) -> None:
    deployment, pods = served(world, r2=double)

    rollout = begin(world, deployment)

    assert rollout.phase == "running"
    before_traffic = quality.before_traffic(rollout=rollout)
    assert (before_traffic.verdict, before_traffic.message) == (
        Verdict.PASSED,
        "approved without golden requests",
    )
    assert (GoldenRun.objects.count(), pods.requests) == (0, [])


def test_a_run_keeps_the_requests_that_were_saved_when_it_began(world: World) -> None:
    old = save(world)
    deployment, pods = served(world)
    begin(world, deployment)
    sweep(world, deployment)
    golden_requests.retire(actor=world.member, golden_id=old.pk)
    save(world, "later", 5.0, 0.0)
    pods.answers[2] = double

    rollout = sweep(world, deployment, seconds=30)

    assert rollout.phase == "running"
    assert [row.name for row in quality.before_traffic(rollout=rollout).rows] == ["one"]


def test_probes_repeat_at_each_step_and_a_changed_answer_aborts(world: World) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    sweep(world, deployment)
    rollout = sweep(world, deployment, seconds=5)
    guard = guards_for(rollout)[0]
    assert (guard.guard, guard.verdict, guard.n) == ("Golden answers", "pass", 1)

    pods.answers[2] = lambda x: -x
    rollout = sweep(world, deployment, seconds=31)

    assert guards_for(rollout)[0].verdict == "fail"
    assert rollout.phase in ("aborting", "aborted")
    assert weight(deployment) == 0


def test_a_probe_without_responses_is_not_known_and_aborts_nothing(
    world: World,
) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    sweep(world, deployment)
    sweep(world, deployment, seconds=5)
    del pods.answers[2]

    rollout = sweep(world, deployment, seconds=31)
    assert guards_for(rollout)[0].verdict == "pass"
    for _ in range(2):
        rollout = sweep(world, deployment, seconds=31)

    guard = guards_for(rollout)[0]
    assert guard.verdict == "not enough data"
    assert "did not respond to golden requests" in guard.message
    assert rollout.phase == "running"


def test_a_roll_back_does_not_wait_for_golden_requests(world: World) -> None:
    save(world)
    deployment, pods = served(world, r2=double)
    begin(world, deployment)
    ChangeRequest.objects.filter(rollout__isnull=False).update(kind="roll_back")

    rollout = sweep(world, deployment)

    assert rollout.phase == "running"
    assert (GoldenRun.objects.count(), pods.requests) == (0, [])
