"""What the objects of a pipeline mean: one is ready only when all of them say so of what is desired now."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.pipelines.domain.reconcile import Live, PipelineVerdict, judge
from deployments.states import DeploymentState


def condition(kind: str, status: str = "True", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "message": message}


def live(
    *, observed: int = 2, available: str = "True", ready: str = "True", accepted: str = "True"
) -> Live:
    """A pipeline whose router has generation 2."""
    return Live(
        graph={"status": {"conditions": [condition("Ready", ready, "no runtime.")]}},
        router={
            "metadata": {"generation": 2},
            "status": {
                "observedGeneration": observed,
                "conditions": [condition("Available", available, "no pod")],
            },
        },
        route={"status": {"parents": [{"conditions": [condition("Accepted", accepted, "no")]}]}},
    )


def test_one_that_all_objects_call_ready_is_ready() -> None:
    assert judge(live(), failing=(), is_late=True) == PipelineVerdict(state=DeploymentState.READY)


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        (live(observed=1), "The router is being replaced."),
        (live(available="False"), "The router is not up: no pod."),
        (live(ready="False"), "KServe: no runtime."),
        (live(ready="Unknown"), "KServe does not report it ready yet."),
        (live(accepted="False"), "The gateway: no."),
        (Live(), "KServe has not started the router yet."),
    ],
)
def test_what_is_not_ready_progresses_until_it_is_late(observed: Live, reason: str) -> None:
    progressing = judge(observed, failing=["It fails."], is_late=False)
    late = judge(observed, failing=[], is_late=True)

    assert progressing == PipelineVerdict(state=DeploymentState.PROGRESSING, reason=reason)
    assert late == PipelineVerdict(
        state=DeploymentState.DEGRADED, reason=f"{reason} It is taking too long."
    )


def test_deployments_behind_it_that_fail_degrade_it() -> None:
    verdict = judge(live(), failing=["a fails.", "b fails."], is_late=False)

    assert verdict == PipelineVerdict(state=DeploymentState.DEGRADED, reason="a fails. b fails.")
