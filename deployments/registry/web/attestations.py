"""Signatures and provenance on a version's page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from deployments.attestations.services import attestations
from deployments.attestations.web.forms import AttestationForm
from deployments.models import ModelVersion
from deployments.registry.selectors import versions
from deployments.registry.web import version as version_page
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only
from portal.ui.htmx import respond


@require_POST
@people_only
def add(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version = _find(user, team, name, number)
    policy.require(user, Action.UPLOAD, version)
    form = AttestationForm(request.POST, request.FILES)
    row = form.run(lambda: attestations.add(actor=user, version_id=version.pk, **form.draft()))
    if row is not None:
        messages.success(request, f"{row.filename} is added and will be verified.")
        return _to_page(version)
    context = version_page.context_of(request, user, version) | {"attestation_form": form}
    return respond(request, "registry/version.html", context, status=form.status)


@require_POST
@people_only
def remove(
    request: HttpRequest, user: User, team: str, name: str, number: int, attestation_id: int
) -> HttpResponse:
    version = _find(user, team, name, number)
    attestations.remove(actor=user, version_id=version.pk, attestation_id=attestation_id)
    messages.success(request, "The attestation is removed.")
    return _to_page(version)


def _find(user: User, team: str, name: str, number: int) -> ModelVersion:
    return versions.get_version_by_number(actor=user, team_slug=team, name=name, number=number)


def _to_page(version: ModelVersion) -> HttpResponse:
    where = reverse("version", args=[version.team.slug, version.model.name, version.number])
    return HttpResponseRedirect(f"{where}#attestations")
