"""Rows of the tables on pages of fleet actions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

from fleet.actions.domain.evidence import AffectedDeployment
from fleet.capacity.domain.drain_preview import MovedPod
from fleet.capacity.web.board import deployment_url


@dataclass(frozen=True, slots=True)
class PodRow:
    moved: MovedPod
    url: str

    @classmethod
    def from_moved_pod(cls, moved: MovedPod) -> PodRow:
        return cls(moved, deployment_url(moved.pod.team_slug, moved.pod.deployment))


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    affected: AffectedDeployment
    url: str

    @classmethod
    def from_affected(cls, affected: AffectedDeployment) -> DeploymentRow:
        return cls(affected, deployment_url(affected.team_slug, affected.deployment))


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff. `sign` is that of a unified diff: + - @, or empty for a line of both."""

    sign: str
    text: str


_CONTEXT: Final = 3


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """Return the lines of a unified diff. A new document is shown whole."""
    if not before:
        return [DiffLine("+", line) for line in after.splitlines()]
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    return [_line(line) for line in list(lines)[2:]]


def _line(line: str) -> DiffLine:
    """A line of both is as far in as those with a sign."""
    sign = line[:1].strip()
    return DiffLine(sign, line[1:] if sign else f"  {line[1:]}")
