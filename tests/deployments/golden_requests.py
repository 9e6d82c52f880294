"""A model with golden requests, and pods that answer as each revision's version would."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deployments.changes.services import requests
from deployments.guards.domain.evidence import GuardResult
from deployments.models import Deployment, GoldenRequest, GoldenRun, ModelVersion, Rollout
from deployments.plans.selectors import plans
from deployments.quality.selectors import quality
from deployments.quality.services import golden_requests, golden_runs
from fleet.kube.domain.errors import Unreachable
from fleet.kube.domain.pod_proxy import PodRequest, PodResponse
from tests.deployments.canaries import STEPS
from tests.deployments.world import World

SIGNATURE = {
    "inputs": [{"name": "x", "dtype": "FP32", "dims": [-1, 1]}],
    "outputs": [{"name": "y", "dtype": "FP32", "dims": [-1, 1]}],
    "max_batch_size": 8,
}


def tensor(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "datatype": "FP32", "shape": [1, 1], "data": [value]}


def request_of(x: float) -> dict[str, Any]:
    return {"inputs": [tensor("x", x)]}


def metadata() -> dict[str, Any]:
    return {
        "name": "detector",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 1]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 1]}],
    }


@dataclass
class Pods:
    """`answers`: by revision number, what it makes of x. A missing revision is unreachable."""

    answers: dict[int, Callable[[float], float]]
    metadata: dict[str, Any] = field(default_factory=metadata)
    requests: list[tuple[int, float]] = field(default_factory=list)
    crash_before: int | None = None
    status: int = 200

    def __call__(self, call: PodRequest) -> PodResponse:
        number = int(call.pod.removeprefix("detector-r").split("-")[0])
        if number not in self.answers:
            raise Unreachable(f"pod {call.pod} cannot be reached")
        if call.body is None:
            return PodResponse(200, json.dumps(self.metadata).encode())
        if len(self.requests) == self.crash_before:
            self.crash_before = None
            raise KeyboardInterrupt
        x = json.loads(call.body)["inputs"][0]["data"][0]
        self.requests.append((number, x))
        if self.status != 200 and number == 2:
            return PodResponse(self.status, b'{"error": "the GPU is on fire"}')
        answer = {"outputs": [tensor("y", self.answers[number](x))]}
        return PodResponse(200, json.dumps(answer).encode())


def guards_for(rollout: Rollout) -> tuple[GuardResult, ...]:
    """Results of the guards on answers, with the limits of the plan."""
    return quality.guards_for(rollout=rollout, limits=plans.plan_of(rollout).quality_limits)


def double(x: float) -> float:
    return 2 * x


def save(world: World, name: str = "one", x: float = 1.0, y: float = 2.0) -> GoldenRequest:
    return golden_requests.save(
        actor=world.member,
        team_slug="vision",
        model_name="detector",
        name=name,
        request=request_of(x),
        expected=[tensor("y", y)],
        version_id=world.version1.pk,
    )


def served(world: World, **answers: Callable[[float], float]) -> tuple[Deployment, Pods]:
    """Revision 1 serves and doubles; `r2=…` is what the candidate will do."""
    deployment = world.play("golden", lambda: serving_with_signature(world))
    made = {int(name[1:]): answer for name, answer in answers.items()}
    pods = Pods({1: double, **made})
    world.cluster.pods = pods
    return deployment, pods


def serving_with_signature(world: World, **changed: Any) -> Deployment:
    ModelVersion.objects.update(signature=SIGNATURE)
    return world.serving(**changed)


def begin(world: World, deployment: Deployment, **plan: Any) -> Rollout:
    """A canary whose candidate has just become ready; the golden requests are not sent yet."""
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        **plan,
    )
    world.approved(change)
    world.reconcile_now(deployment)
    world.cluster.make_ready("detector-r2")
    world.reconcile_now(deployment)
    return Rollout.objects.get()


def sweep(world: World, deployment: Deployment, seconds: float = 0) -> Rollout:
    """What the workers do, `seconds` later."""
    world.clock.move(seconds)
    if golden_runs.has_work():
        golden_runs.sweep()
    world.reconcile_now(deployment)
    return Rollout.objects.get()


def run() -> GoldenRun:
    return GoldenRun.objects.get(purpose="before traffic")


def weight(deployment: Deployment) -> int:
    deployment.refresh_from_db()
    return deployment.candidate_weight
