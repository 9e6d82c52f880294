"""Deployments of a team, delivered to the cluster under contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import Deployment
from deployments.states import Environment
from fleet.kube.gateways.client import HttpKubeClient
from fleet.kube.services import clients, objects
from fleet.models import Cluster
from portal.accounts.models import Team
from tests.contract.conftest import new_namespace
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["Delivered", "cluster_calls", "delivered", "moving_clock", "world"]


@dataclass
class Delivered:
    world: World
    namespace: str

    def deployed(self, name: str, **changed: Any) -> Deployment:
        values = {"engine": "triton", **changed}
        draft = self.world.draft(name, Environment.STAGING, **values)
        change = requests.request_deploy(actor=self.world.member, draft=draft)
        self.world.approved(change)
        return self.reconcile_now(deployment_of(change))

    def reconcile_now(self, deployment: Deployment) -> Deployment:
        """Some minutes later, so that everything is compared again."""
        self.world.clock.move(300)
        return self.world.reconcile_now(deployment)

    def scale(self, deployment: Deployment, least: int, most: int) -> None:
        """Requested, approved and delivered."""
        change = requests.request_scale(
            actor=self.world.member,
            deployment_id=deployment.pk,
            min_replicas=least,
            max_replicas=most,
        )
        self.world.approved(change)
        self.reconcile_now(deployment)

    def get(self, api_version: str, kind: str, name: str) -> Any:
        return objects.get(
            cluster_id=self.world.cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=self.namespace,
            name=name,
        )


@pytest.fixture
def delivered(
    world: World, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Delivered]:
    """The team's namespace is one of the cluster under contract."""
    monkeypatch.setattr(clients, "factory", HttpKubeClient)
    clients.forget()
    Cluster.objects.filter(pk=world.cluster_id).update(
        kind="kubeconfig", kubeconfig_path=str(kubeconfig)
    )
    with new_namespace(world.cluster_id) as namespace:
        Team.objects.filter(pk=world.team.pk).update(slug=namespace)
        world.version1.model.team.refresh_from_db()
        yield Delivered(world, namespace)
    clients.forget()
