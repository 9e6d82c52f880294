"""The checklist of a team's first day on its home page. What is done follows from the team's rows, not from clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.urls import reverse

from deployments.models import Deployment
from deployments.pages.selectors import home as page_home
from deployments.serving.selectors.statistics import Figures
from deployments.states import DeploymentState
from fleet.telemetry.selectors import current
from portal.accounts import tokens
from portal.accounts.models import Team, User

# Where the demo puts a model to try everything with.
SAMPLE: Final = "var/samples/filetype.onnx"
_GUIDE: Final = "guide-data-scientist"
# A token of one's own is proposed in a new team only: people of an old one have what they need.
_NEW_FOR: Final = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class TeamProgress:
    """How far the team is, alike for all its people. `serving` names a deployment that can be tried; empty if none."""

    has_version: bool
    has_request: bool
    has_traffic: bool
    serving: str

    @property
    def is_done(self) -> bool:
        return self.has_version and self.has_request and self.has_traffic


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    detail: str
    is_done: bool
    verb: str
    url: str
    # A file to copy the name of, and a document to read.
    sample: str = ""
    guide: str = ""


def read_progress(
    user: User, team: Team, newest: Sequence[Deployment], figures: Figures
) -> TeamProgress:
    """Read how far the team is. `newest` are its live deployments, `figures` the sums over their traffic."""
    slug = team.slug
    has_version = bool(newest) or page_home.has_versions(actor=user, team_slug=slug)
    has_request = bool(newest) or page_home.has_requests(actor=user, team_slug=slug)
    has_traffic = bool(figures.requests_per_second)
    return TeamProgress(
        has_version=has_version,
        has_request=has_request,
        has_traffic=has_traffic or (has_request and current.has_answered_requests(team_slug=slug)),
        serving=next((row.name for row in newest if row.state == DeploymentState.READY), ""),
    )


def key_of(team: Team) -> str:
    """Return the name under which a person closes the checklist of the team."""
    return f"first day {team.pk}"


def list_steps(user: User, team: Team, progress: TeamProgress, now: datetime) -> list[Step]:
    """List the steps of the first day. Empty when all is done."""
    if progress.is_done and now - team.created_at > _NEW_FOR:
        return []
    has_token = tokens.has_token(user)
    if progress.is_done and has_token:
        return []
    return [
        _upload(team, is_done=progress.has_version),
        Step(
            "Request a deployment",
            "A deployment serves a version at a stable address. An approver (not you) signs off.",
            progress.has_request,
            "New deployment",
            reverse("new-deployment", args=(team.slug,)),
        ),
        _send(team, progress),
        Step(
            "Create an API token",
            "Scripts, notebooks and the slipway command sign in with it.",
            has_token,
            "Create a token",
            reverse("tokens"),
        ),
    ]


def _upload(team: Team, *, is_done: bool) -> Step:
    detail = "Slipway verifies it, reads its inputs and outputs and estimates its GPU memory."
    is_demo = bool(settings.SLIPWAY_DEMO)
    return Step(
        "Upload a model",
        detail if is_done else f"{team.name} has no models yet. {detail}",
        is_done,
        "Upload the first version",
        reverse("upload", args=(team.slug,)),
        sample=SAMPLE if is_demo else "",
        guide="" if is_demo else reverse("document", args=(_GUIDE,)),
    )


def _send(team: Team, progress: TeamProgress) -> Step:
    url = reverse("try-it", args=(team.slug, progress.serving)) if progress.serving else ""
    ready = "The Try it tab sends one from the browser and shows it for curl and Python."
    waiting = "Once the deployment is ready, its Try it tab sends one from the browser."
    detail = ready if url or progress.has_traffic else waiting
    return Step("Send a request", detail, progress.has_traffic, "Try it", url)
