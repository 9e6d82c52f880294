"""The preview of a drain, for platform admins."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fleet.capacity.domain.drain_preview import MovedPod
from fleet.capacity.services import drain_preview
from fleet.capacity.web.board import deployment_url
from portal.accounts.models import User
from portal.ui.access import people_only


@dataclass(frozen=True, slots=True)
class PodRow:
    moved: MovedPod
    url: str


@require_GET
@people_only
def drain_page(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    rows = [
        PodRow(moved, deployment_url(moved.pod.team_slug, moved.pod.deployment))
        for moved in drain.preview.pods
    ]
    context = {
        "node": drain.node,
        "preview": drain.preview,
        "rows": rows,
        "usd_per_hour_amount": drain.usd_per_hour_amount,
        "problem": drain.problem,
    }
    return render(request, "capacity/drain.html", context)
