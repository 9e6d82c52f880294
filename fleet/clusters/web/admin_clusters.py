"""Admin pages of clusters: list, capabilities, connection form and connection test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from fleet.clusters.domain.capabilities import Feature, GpuOffer, Offer
from fleet.clusters.domain.capability_descriptions import ENGINE_NEEDS, FEATURE_DESCRIPTIONS
from fleet.clusters.domain.connection_checks import GRANT, Check
from fleet.clusters.selectors import clusters as cluster_list
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.clusters.services import clusters, connection_checks
from fleet.clusters.web.forms import ClusterForm
from fleet.kube.services import installation
from portal.accounts import policy
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature on a cluster's page. `what_to_do` is empty for installed features."""

    title: str
    feature: Feature
    needed_for: str
    what_to_do: str


@dataclass(frozen=True, slots=True)
class EngineRow:
    name: str
    offer: Offer


@dataclass(frozen=True, slots=True)
class ClusterRow:
    info: ClusterInfo
    # Whether the watch stream is alive; None: the cluster is only polled.
    is_watched: bool | None

    @property
    def features(self) -> list[FeatureRow]:
        return [
            _feature_row(name, self.info.capabilities.feature(name))
            for name in FEATURE_DESCRIPTIONS
        ]

    @property
    def engines(self) -> list[EngineRow]:
        return [
            EngineRow(name, self.info.capabilities.offers_engine(name)) for name in ENGINE_NEEDS
        ]

    @property
    def installed(self) -> int:
        return sum(1 for row in self.features if row.feature.is_there)

    @property
    def missing(self) -> int:
        return sum(1 for row in self.features if row.feature.is_there is False)

    @property
    def unknown(self) -> int:
        return sum(1 for row in self.features if row.feature.is_there is None)

    @property
    def probed_at(self) -> datetime | None:
        return (
            datetime.fromisoformat(self.info.capabilities.probed_at)
            if self.info.capabilities.probed_at
            else None
        )

    @property
    def gpu_offers(self) -> Sequence[GpuOffer]:
        return self.info.capabilities.gpu_offers or ()


@require_GET
@people_only
def cluster_page(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    rows = [_row(info) for info in cluster_list.list_clusters()]
    context = {"clusters": rows, "installation": installation.read()}
    return render(request, "clusters/admin_clusters.html", context)


@require_http_methods(["GET", "POST"])
@people_only
def new_cluster(request: HttpRequest, user: User) -> HttpResponse:
    policy.require_platform_admin(user)
    form = ClusterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        cluster_id = _register(user, form)
        if cluster_id is not None:
            messages.success(
                request, f"{form.cleaned_data['name']} added. Test the connection now."
            )
            return redirect("admin-cluster", cluster_id=cluster_id)
    return _render_form(request, form, None)


@require_GET
@people_only
def cluster_detail(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    return _render_detail(request, cluster_id, None)


@require_http_methods(["GET", "POST"])
@people_only
def edit_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    draft = clusters.get_draft(actor=user, cluster_id=cluster_id)
    form = ClusterForm(request.POST or None, draft=draft)
    if request.method == "POST" and form.is_valid() and _register(user, form) is not None:
        messages.success(request, f"Connection of {draft.name} saved. Test it now.")
        return redirect("admin-cluster", cluster_id=cluster_id)
    return _render_form(request, form, cluster_id)


@require_POST
@people_only
def delete_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    name = cluster_list.get_cluster(cluster_id).name
    try:
        clusters.delete(actor=user, cluster_id=cluster_id)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("admin-cluster", cluster_id=cluster_id)
    messages.success(request, f"{name} deleted. The cluster itself was not changed.")
    return redirect("admin-clusters")


@require_POST
@people_only
def test_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    steps = connection_checks.steps(actor=user, cluster_id=cluster_id)
    return _render_detail(request, cluster_id, steps)


def _register(user: User, form: ClusterForm) -> int | None:
    try:
        return clusters.register(actor=user, draft=form.draft())
    except Invalid as error:
        add_to(form, error)
        return None


def _render_form(request: HttpRequest, form: ClusterForm, cluster_id: int | None) -> HttpResponse:
    context = {"form": form, "cluster_id": cluster_id, "name": form.initial.get("name", "")}
    status = 422 if form.errors else 200
    return render(request, "clusters/admin_cluster_form.html", context, status=status)


def _render_detail(
    request: HttpRequest, cluster_id: int, steps: Sequence[Check] | None
) -> HttpResponse:
    context = {
        "row": _row(cluster_list.get_cluster(cluster_id)),
        "steps": steps,
        "installation": installation.read(),
    }
    return render(request, "clusters/admin_cluster.html", context)


def _row(info: ClusterInfo) -> ClusterRow:
    is_known = info.watch_seen_at is not None
    return ClusterRow(info, info.is_watched(clock.now()) if is_known else None)


def _feature_row(name: str, feature: Feature) -> FeatureRow:
    description = FEATURE_DESCRIPTIONS[name]
    fix = {True: "", False: description.install, None: description.fix_unknown or GRANT}[
        feature.is_there
    ]
    return FeatureRow(
        title=description.title,
        feature=feature,
        needed_for=description.purpose,
        what_to_do=fix,
    )
