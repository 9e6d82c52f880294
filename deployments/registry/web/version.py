"""The page of a version: identity, signature, checks, how to call it, and what may be decided about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from deployments.attestations.selectors import attestations
from deployments.attestations.web.forms import AttestationForm
from deployments.models import Deployment, ModelVersion
from deployments.registry.domain import declarations as declaring
from deployments.registry.domain import external_weights, loading, signatures
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.hugging_face import facts
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.scanning import releases, verdicts
from deployments.registry.selectors import served_revisions
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.services import aliases, declarations, metadata, source_code, versions
from deployments.registry.web import file_table, shown_metadata, starts
from deployments.registry.web import signature as registry_signature
from deployments.registry.web.forms import (
    AliasForm,
    DeclareForm,
    ReasonForm,
    ReleaseForm,
)
from deployments.registry.web.metadata_form import EditMetadataForm
from deployments.sizing.domain import declared_size
from deployments.sizing.selectors import measurements
from deployments.spec.domain import serving_spec
from deployments.states import Environment, VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import STOP_POLLING, respond
from portal.ui.service_form import ServiceForm

_IN_PROGRESS = (VersionState.UPLOADING, VersionState.VERIFYING)
_UNKNOWN_URL = "https://models.example.com/{team}/{model}"


@require_GET
@people_only
def version_page(
    request: HttpRequest, user: User, team: str, name: str, number: int
) -> HttpResponse:
    version = _find(user, team, name, number)
    return respond(request, "registry/version.html", context_of(request, user, version))


@require_GET
@people_only
def checks(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    """Show the live checklist alone. Status 286 ends the polling once the state is final."""
    version = _find(user, team, name, number)
    is_final = version.state not in _IN_PROGRESS
    context = {
        "version": version,
        "format_name": catalogue.describe(version.format),
        "is_final": is_final,
        # The upload page asks for the fragment and has no other way on.
        "show_links": "links" in request.GET,
        "can_deploy": policy.is_allowed(user, Action.REQUEST_CHANGE, version),
        "can_upload": policy.is_allowed(user, Action.UPLOAD, version),
    }
    status = STOP_POLLING if is_final and getattr(request, "htmx", False) else 200
    return respond(request, "registry/_verification.html", context, status=status)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def edit_metadata(
    request: HttpRequest, user: User, team: str, name: str, number: int
) -> HttpResponse:
    version = _find(user, team, name, number)
    policy.require(user, Action.UPLOAD, version)
    size = declared_size.from_version(version.source_uri, version.metadata, version.signature)
    form = EditMetadataForm.from_stored(
        request.POST or None, stored=version.metadata, readme=version.readme, size=size
    )
    if request.method == "POST":

        def save() -> ModelVersion:
            return metadata.describe(
                actor=user,
                version_id=version.pk,
                metadata=form.metadata(),
                readme=form.cleaned_data["readme"],
            )

        if form.run(save):
            return _to_page(version)
    context = {"version": version, "form": form}
    return respond(request, "registry/edit_metadata.html", context, status=form.status)


@require_POST
@people_only
def set_alias(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    form = AliasForm(request.POST)

    def move() -> object:
        return aliases.move(
            actor=user,
            team_slug=team,
            model_name=name,
            alias=form.cleaned_data["alias"],
            number=number,
            # Unticked keeps what it was: unprotecting is done through the API on purpose.
            is_protected=True if form.cleaned_data["is_protected"] else None,
        )

    return _decide(request, user, _find(user, team, name, number), form, "alias_form", move)


@require_POST
@people_only
def declare(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version, form = _find(user, team, name, number), DeclareForm(request.POST)

    def run() -> object:
        return declarations.declare(actor=user, version_id=version.pk, **form.get_arguments())

    return _decide(request, user, version, form, "declare_form", run)


@require_POST
@people_only
def archive(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version, form = _find(user, team, name, number), ReasonForm(request.POST)

    def run() -> object:
        return versions.archive(
            actor=user, version_id=version.pk, reason=form.cleaned_data["reason"]
        )

    return _decide(request, user, version, form, "archive_form", run)


@require_POST
@people_only
def restore(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version, form = _find(user, team, name, number), ReasonForm(request.POST)

    def run() -> object:
        return versions.restore(actor=user, version_id=version.pk)

    return _decide(request, user, version, form, "archive_form", run)


@require_POST
@people_only
def release(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version, form = _find(user, team, name, number), ReleaseForm(request.POST)

    def run() -> object:
        return versions.release(actor=user, version_id=version.pk, **form.cleaned_data)

    return _decide(request, user, version, form, "release_form", run)


def _decide(
    request: HttpRequest,
    user: User,
    version: ModelVersion,
    form: ServiceForm,
    form_name: str,
    call: Callable[[], object],
) -> HttpResponse:
    """Run it and return to the page; a refusal shows at the form with what was typed."""
    if form.run(call) is not None:
        return _to_page(version)
    context = context_of(request, user, version) | {form_name: form}
    return respond(request, "registry/version.html", context, status=form.status)


def _find(user: User, team: str, name: str, number: int) -> ModelVersion:
    return registry_versions.get_version_by_number(
        actor=user, team_slug=team, name=name, number=number
    )


def _is_on_knative(serving: Sequence[Deployment]) -> bool:
    """Whether the first has a route without gRPC."""
    revisions = [d.stable_revision or d.candidate_revision for d in serving[:1]]
    specs = [
        serving_spec.read_stored(revision.spec) for revision in revisions if revision is not None
    ]
    return any(spec.scaling.kind == serving_spec.KNATIVE for spec in specs)


def _to_page(version: ModelVersion) -> HttpResponse:
    where = reverse("version", args=[version.team.slug, version.model.name, version.number])
    return HttpResponseRedirect(where)


def _describe_language_model(version: ModelVersion) -> dict[str, Any]:
    """Return the facts of a language model, or None, the engines that load the version, and its declared KV
    cache.
    """
    return {
        "language_model": version.signature.get(facts.KEY),
        "engines": loading.engines_for(version.source_uri, version.format, version.signature),
        "declared_kv_kib": version.metadata.get(declared_size.KV_CACHE, 0),
    }


def context_of(request: HttpRequest, user: User, version: ModelVersion) -> dict[str, Any]:
    signature = signatures.from_json(version.signature)
    load_test = results.read_load_test(version.signature)
    declared = declaring.from_json(version.declared)
    serving = registry_versions.deployments_serving([version.pk]).get(version.pk, [])
    served = served_revisions.read_served_revisions(version)
    url = _UNKNOWN_URL.format(team=version.team.slug, model=version.model.name)
    if serving:
        url = f"{serving[0].cluster.gateway_url}/{serving[0].namespace}/{serving[0].name}"
    return {
        "version": version,
        "reference": external_weights.parse(version.source_uri) if version.source_uri else None,
        "is_final": version.state not in _IN_PROGRESS,
        "have_all_passed": bool(version.checks) and all(c["ok"] is True for c in version.checks),
        "format_name": catalogue.describe(version.format),
        "is_declared": catalogue.is_declared(version.format),
        **file_table.build_file_table(request, version),
        "signature": signature,
        **shown_metadata.context_of(version),
        **_describe_language_model(version),
        **registry_signature.table(request, signature, load_test),
        "config": registry_signature.truncate(version.config_pbtxt),
        "serving": serving,
        "starts": starts.rows_of(served),
        "peak_mib": served_revisions.peak_mib(served),
        "load_test": load_test,
        **registry_signature.calls(
            url, version.model.name, signature, has_grpc=not _is_on_knative(serving)
        ),
        "attestations": attestations.list_of(version),
        "shortfalls": attestations.shortfalls(version, environment=Environment.PRODUCTION) or [],
        "attestation_form": AttestationForm(),
        "twins": registry_versions.twins_of(version),
        "alias_form": AliasForm(),
        "archive_form": ReasonForm(),
        "declare_form": DeclareForm(initial=DeclareForm.initial_of_declared(declared)),
        "can_declare": declarations.can_declare(user, version),
        "vram_min_mib": measurements.min_vram_mib(version),
        "release_form": ReleaseForm(),
        "scan": verdicts.from_json(version.scan),
        "release": releases.from_json(version.release),
        "code_paths": source_code.paths(version) if source_code.can_read(user, version) else [],
        "can_upload": policy.is_allowed(user, Action.UPLOAD, version),
        "can_deploy": policy.is_allowed(user, Action.REQUEST_CHANGE, version),
        "can_release": policy.is_allowed(
            user, Action.RELEASE_QUARANTINE, version, requester_id=version.created_by_id
        )
        and versions.can_have_effect(version),
    }
