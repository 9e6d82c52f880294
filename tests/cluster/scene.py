"""A team that serves a model on the real control plane, from its upload to the end of its deployment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Deployment, ModelVersion, Rollout
from deployments.preflight.services.preflight import DeployDraft
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions, prometheus_readings
from deployments.serving.selectors import deployments as deployment_selectors
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment, RolloutPhase
from fleet.models import Cluster
from fleet.observation.services import sweep
from fleet.telemetry.services import poll
from portal.accounts.models import Role, User
from portal.core.errors import Conflict
from tests import plain_http
from tests.accounts import make_membership, make_team, make_user
from tests.cluster.agents import Agents
from tests.cluster.kubectl import Kubectl
from tests.cluster.uploads import upload
from tests.contract import adder
from tests.contract.sweeps import until
from tests.rollout_plans import AT_ONCE

_HALF = [{"weight": 50, "soak_seconds": 0, "min_requests": 0}]


@dataclass
class Scene:
    """One deployment of a team whose namespace is `namespace`."""

    cluster: Cluster
    agents: Agents
    namespace: str
    admin: Kubectl
    client: Client
    member: User = field(init=False)
    lead: User = field(init=False)

    def __post_init__(self) -> None:
        team = make_team(slug=self.namespace, quota_gpus=2)
        self.member, self.lead = make_user(username="member"), make_user(username="lead")
        make_membership(user=self.member, team=team, role=Role.MEMBER)
        make_membership(user=self.lead, team=team, role=Role.LEAD)
        self.client.force_login(self.member)

    def upload(self, model: str, amount: float) -> ModelVersion:
        return upload(self.client, team=self.namespace, model=model, body=adder.onnx_file(amount))

    def approve(self, change: ChangeRequest) -> None:
        decisions.approve(actor=self.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    def deploy(self, version: ModelVersion, name: str, spec: ServingSpec) -> str:
        """Its stable address, once it is ready."""
        draft = DeployDraft(
            version.pk, self.cluster.pk, name, spec, environment=Environment.STAGING
        )
        self.approve(requests.request_deploy(actor=self.member, draft=draft))
        self.until(lambda: self.deployment().state == "ready")
        return deployment_selectors.url_of(self.deployment())

    def start_canary(self, version: ModelVersion, spec: ServingSpec | None = None) -> None:
        """Half of the requests go to it, as soon as it is ready."""
        self.approve(
            requests.request_canary(
                actor=self.member,
                deployment_id=self.deployment().pk,
                version_id=version.pk,
                steps=_HALF,
                plan=AT_ONCE,
                spec=spec,
            )
        )
        self.until(lambda: Rollout.objects.get().phase == RolloutPhase.RUNNING)

    def promote(self, send: Callable[[], object]) -> None:
        """By counters of both revisions, read from their pods through the API server."""
        self.until(lambda: self._is_promoted(send))
        self.until(lambda: Rollout.objects.get().phase == RolloutPhase.COMPLETED)

    def _is_promoted(self, send: Callable[[], object]) -> bool:
        """Evidence that changed meanwhile is reviewed again."""
        self.read_pods()
        send()
        rollout = rollouts.get_visible(actor=self.lead, rollout_id=Rollout.objects.get().pk)
        view = rollouts.view_of(actor=self.lead, rollout=rollout)
        if not view.is_promotable or not view.candidate_requests:
            return False
        with suppress(Conflict):
            actions.promote(
                actor=self.lead, rollout_id=rollout.pk, evidence_hash=view.evidence_hash
            )
            return True
        return False

    def read_pods(self) -> None:
        sweep.observe(cluster_id=self.cluster.pk)
        poll.poll()
        prometheus_readings.sweep()

    def retire(self, url: str, path: str) -> None:
        """Nothing is left, and nothing answers."""
        self.approve(requests.request_retire(actor=self.member, deployment_id=self.deployment().pk))
        self.until(lambda: self.deployment().state == "retired")
        self.until(lambda: not self.pods())
        assert plain_http.client.get(f"{url}{path}").status_code == 404

    def deployment(self) -> Deployment:
        return Deployment.objects.get()

    def pods(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.admin.get("pods", f"--namespace={self.namespace}")[
            "items"
        ]
        return listed

    def until(self, done: Callable[[], bool]) -> None:
        until(done, self._describe)

    def _describe(self) -> str:
        deployment = self.deployment()
        events = list(deployment.events.order_by("id").values_list("message", flat=True))
        phases = list(Rollout.objects.values_list("phase", "phase_reason"))
        views = [
            rollouts.view_of(
                actor=self.lead,
                rollout=rollouts.get_visible(actor=self.lead, rollout_id=rollout.pk),
            )
            for rollout in Rollout.objects.all()
        ]
        objects = self.admin.run("get", "events,pods", f"--namespace={self.namespace}")
        log = self.agents.log.read_text()[-3000:]
        return f"{deployment.state}: {deployment.state_reason} {events} {phases}\n{views}\n{objects}\n{log}"
