"""Rows of the tables on pages of fleet actions."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.actions.domain.evidence import AffectedDeployment
from fleet.capacity.domain.drain_preview import MovedPod
from fleet.capacity.web.board import deployment_url


@dataclass(frozen=True, slots=True)
class PodRow:
    moved: MovedPod
    url: str

    @classmethod
    def of(cls, moved: MovedPod) -> PodRow:
        return cls(moved, deployment_url(moved.pod.team_slug, moved.pod.deployment))


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    affected: AffectedDeployment
    url: str

    @classmethod
    def of(cls, affected: AffectedDeployment) -> DeploymentRow:
        return cls(affected, deployment_url(affected.team_slug, affected.deployment))
