"""Two deployments that serve, and a pipeline over them as its people and its cluster move it."""

from __future__ import annotations

from typing import Any

from deployments.changes.selectors.subjects import pipeline_of
from deployments.changes.services import decisions
from deployments.lifecycle.services import apply_changes
from deployments.models import ChangeRequest, Deployment, Pipeline, Revision
from deployments.pipelines.services import reconcile, requests
from deployments.pipelines.services.requests import PipelineDraft
from deployments.states import DeploymentState, Environment
from fleet.models import Cluster
from portal.accounts.models import User
from portal.core import clock
from tests.deployments.world import World

_LABEL = "slipway.dev/pipeline-id"


def step(deployment: str, **changed: Any) -> dict[str, Any]:
    return {"deployment": deployment, **changed}


def node(kind: str, *steps: dict[str, Any], name: str = "root") -> dict[str, Any]:
    return {"name": name, "kind": kind, "steps": list(steps)}


ENSEMBLE = {"nodes": [node("ensemble", step("detector"), step("classifier", is_required=True))]}


def members(world: World) -> None:
    """Rows as after a deploy, on a cluster that takes KServe's router."""
    Cluster.objects.filter(pk=world.cluster_id).update(serving={"pod_security": "baseline"})
    for name in ("detector", "classifier"):
        if Deployment.objects.filter(name=name, is_retired=False).exists():
            continue
        row = Deployment.objects.create(
            team=world.team,
            cluster_id=world.cluster_id,
            name=name,
            namespace="vision",
            environment=Environment.PRODUCTION,
            created_by=world.member,
            created_at=clock.now(),
            state=DeploymentState.READY,
        )
        row.stable_revision = Revision.objects.create(
            deployment=row,
            number=1,
            version=world.version1,
            spec=world.draft(name).spec.to_json(),
            created_by=world.member,
            created_at=clock.now(),
        )
        row.save()


def draft(world: World, spec: Any = None, **changed: Any) -> PipelineDraft:
    values = {"name": "both", "environment": Environment.PRODUCTION, **changed}
    return PipelineDraft(
        team="vision", cluster_id=world.cluster_id, spec=spec or ENSEMBLE, **values
    )


def request_change(world: World, spec: Any = None, **changed: Any) -> ChangeRequest:
    members(world)
    return requests.request_create(actor=world.member, draft=draft(world, spec, **changed))


def approve(who: User, change: ChangeRequest, comment: str = "") -> ChangeRequest:
    change.refresh_from_db()
    return decisions.approve(
        actor=who, change_id=change.pk, evidence_hash=change.evidence_hash, comment=comment
    )


def reconcile_now(pipeline: Pipeline, rounds: int = 5) -> Pipeline:
    """What workers do, pass after pass."""
    for _ in range(rounds):
        apply_changes.sweep()
        Pipeline.objects.filter(pk=pipeline.pk, next_check_at__isnull=False).update(
            next_check_at=clock.now()
        )
        reconcile.sweep()
    pipeline.refresh_from_db()
    return pipeline


def start_router(world: World, pipeline: Pipeline, *, is_up: bool = True) -> None:
    """What KServe does: a Deployment of the graph's labels, and Ready whatever becomes of it."""
    graph = world.cluster.objects["InferenceGraph", "vision", pipeline.name]
    graph["status"] = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "url": "http://both-vision.example.com",
    }
    status = "True" if is_up else "False"
    message = "" if is_up else "Deployment does not have minimum availability."
    condition = {"type": "Available", "status": status, "message": message}
    world.cluster.objects["Deployment", "vision", pipeline.name] = {
        "metadata": {
            "name": pipeline.name,
            "namespace": "vision",
            "generation": 1,
            "labels": {_LABEL: str(pipeline.pk)},
        },
        "spec": {},
        "status": {"observedGeneration": 1, "conditions": [condition]},
    }


def serving(world: World, spec: Any = None) -> Pipeline:
    """A pipeline that was requested, approved, applied and is ready."""
    return world.play(f"pipeline {spec}", lambda: _serve(world, spec))


def _serve(world: World, spec: Any) -> Pipeline:
    change = request_change(world, spec)
    approve(world.lead, change)
    pipeline = reconcile_now(pipeline_of(change))
    start_router(world, pipeline)
    return reconcile_now(pipeline)
