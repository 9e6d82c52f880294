"""Requesting how a node offers its GPUs: its MIG layout, or how they are shared. The page is its preview too."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from fleet.actions.domain import mig_layouts, plugin_configs, relabeling
from fleet.actions.services import gpu_sharing, mig, requests
from fleet.actions.web.forms import GpuSharingForm, MigForm
from fleet.actions.web.node_actions import show_request
from fleet.actions.web.rows import PodRow
from fleet.capacity.services import drain_preview
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only

_MIG_EFFECTS: Final = (
    "No new pods start on the node, and its pods are evicted as their disruption budgets allow",
    "The MIG manager cuts its GPUs, with a reboot where that is needed",
    "The node takes pods again; when the MIG manager fails it stays cordoned",
)


_SLICING_EFFECTS: Final = (
    "No new pods start on the node, and its pods are evicted as their disruption budgets allow",
    "The device plugin reloads with the configuration",
    "The node takes pods again when it offers the replicas; else it stays cordoned",
)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_mig(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    node = drain.node
    layouts = mig.layouts_of(node)
    form = MigForm(request.POST or None, layouts=layouts)
    if request.method == "POST":
        action = form.run(
            lambda: requests.request_mig_layout(
                actor=user,
                node_id=node_id,
                layout=form.cleaned_data["layout"],
                comment=form.cleaned_data["comment"],
                deadline_minutes=form.cleaned_data["deadline_minutes"],
                evict_unmanaged=form.cleaned_data["evict_unmanaged"],
            )
        )
        if action is not None:
            return show_request(request, action)
    strategy = str(node.labels.get(mig_layouts.STRATEGY_LABEL, ""))
    context = {
        "node": node,
        "title": f"MIG layout of {node.name}",
        "choice": "layout",
        "preview": drain.preview,
        "rows": [PodRow.of(moved) for moved in drain.preview.pods],
        "why_not": mig.why_not(node),
        "current": node.labels.get(mig_layouts.CONFIG_LABEL, ""),
        "state": node.labels.get(mig_layouts.STATE_LABEL, ""),
        "strategy": strategy,
        "offers": [
            (layout, relabeling.describe_resources(layout.resources(node.gpu_count, strategy)))
            for layout in layouts
        ],
        "form": form,
        "effects": _MIG_EFFECTS,
    }
    status = form.status if form.is_bound else 200
    return render(request, "actions/mig.html", context, status=status)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_gpu_sharing(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    node = drain.node
    read = gpu_sharing.configs_of(node)
    form = GpuSharingForm(request.POST or None, configs=read.configs)
    if request.method == "POST":
        action = form.run(
            lambda: requests.request_gpu_sharing(
                actor=user,
                node_id=node_id,
                config=form.cleaned_data["config"],
                comment=form.cleaned_data["comment"],
                deadline_minutes=form.cleaned_data["deadline_minutes"],
                evict_unmanaged=form.cleaned_data["evict_unmanaged"],
            )
        )
        if action is not None:
            return show_request(request, action)
    context = {
        "node": node,
        "title": f"Sharing of GPUs on {node.name}",
        "choice": "configuration",
        "preview": drain.preview,
        "rows": [PodRow.of(moved) for moved in drain.preview.pods],
        "why_not": read.problem,
        "source": read.source,
        "current": node.labels.get(plugin_configs.CONFIG_LABEL, ""),
        "offers": [
            (config, relabeling.describe_resources(config.resources(node.gpu_count)))
            for config in read.configs
        ],
        "form": form,
        "effects": _SLICING_EFFECTS,
    }
    status = form.status if form.is_bound else 200
    return render(request, "actions/gpu_sharing.html", context, status=status)
