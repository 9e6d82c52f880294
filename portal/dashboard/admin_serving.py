"""What is served on a cluster with: images, role, credentials."""

from __future__ import annotations

from dataclasses import fields

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from deployments.selectors import plans
from fleet.domain.serving_policies import ServingPolicy
from fleet.selectors import clusters
from fleet.services import serving_policies
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to

_NAMES = tuple(one.name for one in fields(ServingPolicy))


def _text(label: str, help_text: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=300, help_text=help_text, widget=widget
    )


class ServingForm(forms.Form):
    triton_image = _text("Triton", "Of new revisions, and of the runtime in each namespace.")
    triton_vllm_image = _text("Triton with vLLM", "Of new revisions of triton-vllm.")
    vllm_image = _text("vLLM", "Of new revisions of kserve-vllm.")
    storage_image = _text("Storage initializer", "Downloads models for plain Triton.")
    role_arn = _text("Role (IRSA)", "Pods assume it to read the bucket.")
    storage_secret = _text(
        "Or a Secret with S3 keys",
        "Of this name in every team's namespace; not made by the portal.",
    )
    prometheus_url = _text("Prometheus for KEDA", "As the cluster itself reaches it.")
    cache_node_group = _text("Node group of the model cache", "A LocalModelNodeGroup of KServe.")

    def wanted(self) -> ServingPolicy:
        return ServingPolicy(**{name: self.cleaned_data[name].strip() for name in _NAMES})


@require_http_methods(["GET", "POST"])
@people_only
def edit_serving(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    info = clusters.get_cluster(cluster_id)
    form = ServingForm(request.POST or None, initial=info.serving.to_json())
    for name, value in plans.usual_policy().to_json().items():
        form.fields[name].widget.attrs["placeholder"] = value
    if request.method == "POST" and form.is_valid() and _is_set(user, cluster_id, form):
        messages.success(request, f"New revisions on {info.name} are served with this.")
        return redirect("admin-cluster", cluster_id=cluster_id)
    status = 422 if form.errors else 200
    context = {"form": form, "info": info}
    return render(request, "dashboard/admin_cluster_serving.html", context, status=status)


def _is_set(user: User, cluster_id: int, form: ServingForm) -> bool:
    try:
        serving_policies.set_policy(actor=user, cluster_id=cluster_id, wanted=form.wanted())
    except Invalid as error:
        add_to(form, error)
        return False
    return True
