"""What the cluster reports, in plain English: one case for each way in which a pod can hang."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.delivery.domain import health, progress, reconcile
from deployments.delivery.domain.progress import WorkloadProgress
from deployments.delivery.domain.reconcile import (
    Desired,
    NextStep,
    ObservedDeployment,
    ReconcileStep,
)
from deployments.states import CHANGE, DEPLOYMENT, ROLLOUT, DeploymentState


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Pending", **status},
    }


def container(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "state": state}]


_LAST = {"terminated": {"exitCode": 1, "message": "out of GPU memory"}}


@pytest.mark.parametrize(
    ("one", "stage", "is_failing", "message"),
    [
        (
            pod(
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "message": "0/3 nodes are available",
                    }
                ]
            ),
            "accepted",
            False,
            "waiting for a node: 0/3 nodes are available",
        ),
        (
            pod(
                containerStatuses=container(waiting={"reason": "ImagePullBackOff", "message": "no"})
            ),
            "scheduled",
            True,
            "the image cannot be pulled: no",
        ),
        (
            pod(containerStatuses=container(waiting={"reason": "CreateContainerConfigError"})),
            "scheduled",
            True,
            "the container cannot start: CreateContainerConfigError",
        ),
        (
            pod(initContainerStatuses=container(running={})),
            "download",
            False,
            "downloading the model from S3",
        ),
        (
            pod(
                initContainerStatuses=container(
                    terminated={"exitCode": 1, "message": "AccessDenied"}
                )
            ),
            "download",
            True,
            "the bucket denies access: give the pods' service account its role, with "
            "s3:GetObject and s3:ListBucket: AccessDenied",
        ),
        (
            pod(
                initContainerStatuses=container(terminated={"exitCode": 0}),
                containerStatuses=container(running={}),
            ),
            "load",
            False,
            "loading the model",
        ),
        (
            pod(
                containerStatuses=[
                    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": _LAST}
                ]
            ),
            "load",
            True,
            "the container exits while loading: out of GPU memory",
        ),
        (
            pod(
                containerStatuses=[
                    {
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            ),
            "load",
            True,
            "out of memory: raise memory in the serving spec",
        ),
        (pod(phase="Failed", reason="Evicted"), "scheduled", True, "Evicted"),
        (pod(conditions=[{"type": "Ready", "status": "True"}]), "ready", False, ""),
    ],
)
def test_each_stage_of_a_pod_has_its_message(
    one: dict[str, Any], stage: str, is_failing: bool, message: str
) -> None:
    pod_progress = progress.derive_pod_progress(one)

    assert (pod_progress.stage, pod_progress.is_failing, pod_progress.message) == (
        stage,
        is_failing,
        message,
    )


def test_a_deployment_available_without_pods_is_not_ready() -> None:
    """With maxUnavailable 1 and one replica Kubernetes says so from the first moment."""
    claims = {
        "kind": "Deployment",
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": "Available", "status": "True"}],
        },
    }

    progress_of_workload = progress.derive_workload_progress(
        workload=claims, pods=[], desired_pods=1
    )

    assert (progress_of_workload.is_ready, progress_of_workload.message) == (
        False,
        "0 of 1 replicas are ready",
    )


def test_a_load_failure_that_only_kserve_reports_is_shown() -> None:
    blocked = {
        "kind": "InferenceService",
        "status": {
            "modelStatus": {
                "transitionStatus": "BlockedByFailedLoad",
                "lastFailureInfo": {"reason": "ModelLoadFailed", "message": "bad opset"},
            }
        },
    }

    progress_of_workload = progress.derive_workload_progress(
        workload=blocked, pods=[pod()], desired_pods=1
    )

    assert (
        progress_of_workload.reason,
        progress_of_workload.message,
        progress_of_workload.is_failing,
    ) == ("ModelLoadFailed", "bad opset", True)


READY_POD = pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}])


def inference_service(predictor_ready: str, **status: Any) -> dict[str, Any]:
    conditions = [
        {"type": "PredictorReady", "status": predictor_ready},
        {"type": "IngressReady", "status": "False", "reason": "IngressClassNotFound"},
        {"type": "Ready", "status": "False"},
    ]
    return {"kind": "InferenceService", "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize("transition", ["InProgress", "BlockedByFailedLoad"])
def test_kserve_without_an_ingress_of_its_own_becomes_ready_with_its_predictor(
    transition: str,
) -> None:
    """Without IngressReady, KServe ends neither InProgress nor the failure of an earlier start."""
    service = inference_service("True", modelStatus={"transitionStatus": transition})

    state = progress.derive_workload_progress(workload=service, pods=[READY_POD], desired_pods=1)

    assert state == WorkloadProgress("ready")


def test_in_knative_mode_a_predictor_that_serves_an_older_revision_is_not_ready() -> None:
    revisions = {"latestReadyRevision": "d-00001", "latestCreatedRevision": "d-00002"}
    service = inference_service("True", components={"predictor": revisions})

    state = progress.derive_workload_progress(workload=service, pods=[READY_POD], desired_pods=1)

    assert not state.is_ready
    revisions["latestReadyRevision"] = "d-00002"
    assert progress.derive_workload_progress(
        workload=service, pods=[READY_POD], desired_pods=1
    ).is_ready


def llm_service(**conditions: str) -> dict[str, Any]:
    """Its conditions: name -> "True", or the message of why not."""
    return {
        "kind": "LLMInferenceService",
        "status": {
            "conditions": [
                {"type": name, "status": "True"}
                if value == "True"
                else {"type": name, "status": "False", "reason": "Waiting", "message": value}
                for name, value in conditions.items()
            ]
        },
    }


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        # The gateway accepts the pool once the portal's route names it, which it does when this is ready.
        (
            {
                "WorkloadsReady": "True",
                "SchedulerWorkloadReady": "True",
                "InferencePoolReady": "no gateway has accepted it",
                "Ready": "no gateway has accepted it",
            },
            WorkloadProgress("ready"),
        ),
        ({"WorkloadsReady": "True", "Ready": "True"}, WorkloadProgress("ready")),
        (
            {"WorkloadsReady": "True", "SchedulerWorkloadReady": "0 of 1 pods are available"},
            WorkloadProgress("accepted", "Waiting", "0 of 1 pods are available"),
        ),
        (
            {"WorkloadsReady": "True", "PresetsCombined": "True", "SchedulerWorkloadReady": "True"},
            WorkloadProgress("ready"),
        ),
        (
            {"PresetsCombined": "config kserve-config-llm-scheduler not found"},
            WorkloadProgress("accepted", "Waiting", "config kserve-config-llm-scheduler not found"),
        ),
        ({}, WorkloadProgress("accepted", "preparing", "KServe is preparing it")),
    ],
)
def test_an_llm_service_is_ready_with_its_pods_and_its_endpoint_picker(
    conditions: dict[str, str], expected: WorkloadProgress
) -> None:
    observed = progress.derive_workload_progress(
        workload=llm_service(**conditions), pods=[READY_POD], desired_pods=1
    )

    assert observed == expected


def test_a_quota_that_refuses_the_pods_of_kserves_deployment_is_shown() -> None:
    message = (
        'pods "d-r1-predictor-x" is forbidden: exceeded quota: gpus, requested: '
        "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: 4"
    )
    failure = {"type": "ReplicaFailure", "status": "True", "message": message}
    deployment = {"kind": "Deployment", "status": {"conditions": [failure]}}
    service = inference_service("Unknown", modelStatus={"transitionStatus": "InProgress"})

    state = progress.derive_workload_progress(
        workload=service, pods=[], desired_pods=1, controlled=[deployment]
    )

    assert (state.reason, state.is_failing) == ("quota", True)
    assert message in state.message
    ready = inference_service("True")
    enough = progress.derive_workload_progress(
        workload=ready, pods=[READY_POD], desired_pods=1, controlled=[deployment]
    )
    assert enough.is_ready


def test_health_never_makes_an_illegal_transition() -> None:
    stages = [
        None,
        WorkloadProgress("load"),
        WorkloadProgress("load", is_failing=True),
        WorkloadProgress("ready"),
    ]
    for now in DeploymentState:
        if now in (DeploymentState.RETIRED, DeploymentState.STOPPED):
            continue
        for stable in stages:
            for problem in (None, "", "no"):
                for was_ready in (True, False):
                    facts = health.HealthFacts(stable, None, problem, was_ready, is_late=False)
                    if stable is None and now != DeploymentState.PENDING:
                        continue

                    assessed = health.assess(facts, now=now)

                    assert assessed.state == now or assessed.state in DEPLOYMENT[now]


@pytest.mark.parametrize("table", [CHANGE, DEPLOYMENT, ROLLOUT], ids=["change", "depl", "rollout"])
def test_every_state_is_reachable_and_some_are_final(table: Any) -> None:
    states = set(table)
    reached = {next(iter(table))}
    for _ in states:
        reached |= {after for state in reached for after in table[state]}

    assert reached == states
    assert any(not table[state] for state in states)


@pytest.mark.parametrize(
    ("desired", "observed", "expected"),
    [
        (
            Desired({1: "a"}, {"s1": 100}, False),
            ObservedDeployment({}, None),
            NextStep(ReconcileStep.PUSH_REVISION, 1),
        ),
        (
            Desired({1: "a"}, {"s1": 100}, False),
            ObservedDeployment({1: "a"}, None),
            NextStep(ReconcileStep.PUSH_ROUTE),
        ),
        (
            Desired({1: "a"}, {"s1": 100}, False),
            ObservedDeployment({1: "a"}, {"s1": 100}),
            NextStep(ReconcileStep.NONE),
        ),
        (
            # An abort: the route first, although the candidate is still to be pushed.
            Desired({1: "a", 2: "b"}, {"s1": 100}, False),
            ObservedDeployment({1: "a"}, {"s1": 50, "s2": 50}),
            NextStep(ReconcileStep.PUSH_ROUTE),
        ),
        (
            # Nothing is removed while the route is wrong.
            Desired({1: "a"}, {"s1": 100}, False),
            ObservedDeployment({1: "a", 2: "b"}, {"s2": 100}),
            NextStep(ReconcileStep.PUSH_ROUTE),
        ),
        (
            Desired({1: "a"}, {"s1": 100}, False),
            ObservedDeployment({1: "a", 2: "b"}, {"s1": 100}),
            NextStep(ReconcileStep.DELETE_REVISION, 2),
        ),
        (
            Desired({}, {}, True),
            ObservedDeployment({1: "a"}, {"s1": 100}),
            NextStep(ReconcileStep.DELETE_ROUTE),
        ),
        (
            Desired({}, {}, True),
            ObservedDeployment({1: "a"}, None),
            NextStep(ReconcileStep.DELETE_REVISION, 1),
        ),
        (
            Desired({}, {}, True),
            ObservedDeployment({}, None, has_terminating=True),
            NextStep(ReconcileStep.NONE),
        ),
        (
            Desired({}, {}, True),
            ObservedDeployment({}, None),
            NextStep(ReconcileStep.FINISH_RETIRING),
        ),
    ],
)
def test_the_next_step_follows_the_safe_order(
    desired: Desired, observed: ObservedDeployment, expected: NextStep
) -> None:
    assert reconcile.decide(desired, observed) == expected
