"""EC2NodeClasses of a cluster: their list, and requesting a change or a new one."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from fleet.actions.domain import node_class_settings
from fleet.actions.domain.node_class_settings import LARGEST_GIB, SMALLEST_GIB, NodeClassSettings
from fleet.actions.services import class_requests, node_classes
from fleet.actions.web.request_pages import send_or_show
from fleet.clusters.selectors import clusters
from portal.accounts import fleet_policy, roles
from portal.accounts.models import User
from portal.core.errors import Unavailable
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import CommentForm

_EFFECTS: Final = (
    "The cluster gets these settings",
    "Karpenter starts nodes with them and replaces nodes that differ",
)


class NodeClassForm(CommentForm):
    """The form of a node class. An empty field leaves an existing class unchanged."""

    ami_alias = forms.CharField(
        label="AMI",
        required=False,
        max_length=30,
        help_text="al2023@latest, al2023@v20250505 or bottlerocket@v1.20.0. Its NVIDIA variant is chosen for GPU types.",
    )
    role = forms.CharField(
        label="IAM role",
        required=False,
        max_length=128,
        help_text="Name of the role. Or enter an instance profile.",
    )
    instance_profile = forms.CharField(
        label="Instance profile", required=False, max_length=128, help_text="Instead of a role."
    )
    subnet_tags = forms.CharField(
        label="Subnets with tags",
        required=False,
        max_length=2000,
        help_text="key=value, key=value: subnets that have all of these tags.",
    )
    security_group_tags = forms.CharField(
        label="Security groups with tags",
        required=False,
        max_length=2000,
        help_text="key=value, key=value: groups that have all of these tags.",
    )
    volume_gib = forms.IntegerField(
        label="Disk",
        required=False,
        min_value=SMALLEST_GIB,
        max_value=LARGEST_GIB,
        help_text="For images and logs. Leave empty for Karpenter's default of 20 GiB, or to keep the size.",
    )

    @property
    def settings(self) -> NodeClassSettings:
        data = self.cleaned_data
        return NodeClassSettings(
            ami_alias=data["ami_alias"],
            role=data["role"],
            instance_profile=data["instance_profile"],
            subnet_tags=_parts(data["subnet_tags"]),
            security_group_tags=_parts(data["security_group_tags"]),
            volume_gib=data["volume_gib"],
        )


def _parts(text: str) -> tuple[str, ...]:
    """Split a comma-separated list. A tag may contain spaces."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


class NewNodeClassForm(NodeClassForm):
    name = forms.CharField(max_length=63, help_text="Lowercase letters, digits and hyphens.")


@require_GET
@people_only
def classes_of_cluster(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    """Show the node classes, a part of the list of node pools: it asks the cluster, so the page loads it separately."""
    cluster = clusters.get_cluster(cluster_id)
    context: dict[str, Any] = {
        "cluster": cluster,
        "may_request": roles.is_lead(user),
        "classes": (),
        "problem": "",
    }
    try:
        items = node_classes.list_or_unavailable(cluster_id=cluster.id)
        context["classes"] = [
            (str(item["metadata"]["name"]), node_class_settings.read(item)) for item in items
        ]
    except Unavailable as error:
        context["problem"] = error.message
    return render(request, "actions/_classes.html", context)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def change_class(request: HttpRequest, user: User, cluster_id: int, name: str) -> HttpResponse:
    current = node_classes.read_settings(actor=user, cluster_id=cluster_id, name=name)
    form = NodeClassForm(request.POST or None, initial=_initial_of(current))
    return send_or_show(
        request,
        form,
        lambda: class_requests.request_class_change(
            actor=user,
            cluster_id=cluster_id,
            name=name,
            settings=form.settings,
            comment=form.cleaned_data["comment"],
        ),
        "actions/node_class.html",
        {**_context(cluster_id), "name": name, "title": f"Change {name}"},
    )


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def create_class(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    fleet_policy.require_requester(user)
    form = NewNodeClassForm(request.POST or None, initial={"ami_alias": "al2023@latest"})
    return send_or_show(
        request,
        form,
        lambda: class_requests.request_class_creation(
            actor=user,
            cluster_id=cluster_id,
            name=form.cleaned_data["name"],
            settings=form.settings,
            comment=form.cleaned_data["comment"],
        ),
        "actions/node_class.html",
        {**_context(cluster_id), "title": "New EC2NodeClass"},
    )


def _initial_of(settings: NodeClassSettings) -> dict[str, Any]:
    return {
        **settings.to_json(),
        "subnet_tags": ", ".join(settings.subnet_tags),
        "security_group_tags": ", ".join(settings.security_group_tags),
    }


def _context(cluster_id: int) -> dict[str, Any]:
    return {"cluster": clusters.get_cluster(cluster_id), "effects": _EFFECTS}
