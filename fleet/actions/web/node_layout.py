"""Requesting how a node offers its GPUs: its MIG layout, or how they are shared. The page is its preview too."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from fleet.actions.domain import mig_layouts, plugin_configs, relabeling
from fleet.actions.services import gpu_sharing, mig, requests
from fleet.actions.web.forms import GpuSharingForm, MigForm
from fleet.actions.web.request_pages import send_or_show
from fleet.actions.web.rows import PodRow
from fleet.capacity.services import drain_preview
from portal.accounts.models import User
from portal.ui.access import keeps_input, people_only

_MIG_EFFECTS: Final = (
    "No new pods start on the node, and its pods are evicted as their disruption budgets allow",
    "The MIG manager partitions its GPUs and reboots the node if needed",
    "The node takes pods again. If the MIG manager fails, it stays cordoned",
)
_SLICING_EFFECTS: Final = (
    "No new pods start on the node, and its pods are evicted as their disruption budgets allow",
    "The device plugin reloads with the configuration",
    "The node takes pods again once it offers the replicas. Otherwise it stays cordoned",
)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_mig(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    node = drain.node
    layouts = mig.layouts_of(node)
    form = MigForm(request.POST or None, layouts=layouts)
    strategy = str(node.labels.get(mig_layouts.STRATEGY_LABEL, ""))
    context = {
        "node": node,
        "title": f"MIG layout of {node.name}",
        "choice": "layout",
        "preview": drain.preview,
        "rows": [PodRow.from_moved_pod(moved) for moved in drain.preview.pods],
        "why_not": mig.why_not(node),
        "current": node.labels.get(mig_layouts.CONFIG_LABEL, ""),
        "state": node.labels.get(mig_layouts.STATE_LABEL, ""),
        "strategy": strategy,
        "offers": [
            (layout, relabeling.describe_resources(layout.resources(node.gpu_count, strategy)))
            for layout in layouts
        ],
        "effects": _MIG_EFFECTS,
    }
    return send_or_show(
        request,
        form,
        lambda: requests.request_mig_layout(actor=user, node_id=node_id, **form.cleaned_data),
        "actions/mig.html",
        context,
    )


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def request_gpu_sharing(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    drain = drain_preview.preview(actor=user, node_id=node_id)
    node = drain.node
    read = gpu_sharing.describe_configs(node)
    form = GpuSharingForm(request.POST or None, configs=read.configs)
    context = {
        "node": node,
        "title": f"Sharing of GPUs on {node.name}",
        "choice": "configuration",
        "preview": drain.preview,
        "rows": [PodRow.from_moved_pod(moved) for moved in drain.preview.pods],
        "why_not": read.problem,
        "source": read.source,
        "current": node.labels.get(plugin_configs.CONFIG_LABEL, ""),
        "offers": [
            (config, relabeling.describe_resources(config.resources(node.gpu_count)))
            for config in read.configs
        ],
        "effects": _SLICING_EFFECTS,
    }
    return send_or_show(
        request,
        form,
        lambda: requests.request_gpu_sharing(actor=user, node_id=node_id, **form.cleaned_data),
        "actions/gpu_sharing.html",
        context,
    )
