"""Admin page of a cluster's serving policy: images, access to models, limits of pods."""

from __future__ import annotations

from dataclasses import fields

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from fleet.clusters.domain import serving_policy as serving_rules
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors import clusters, default_serving_policy
from fleet.clusters.services import serving_policy as cluster_serving_policy
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to

_NAMES = tuple(field.name for field in fields(ServingPolicy))


def _text(label: str, help_text: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=300, help_text=help_text, widget=widget
    )


def _lines(label: str, help_text: str) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": "4", "spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=20_000, help_text=help_text, widget=widget
    )


class ServingForm(forms.Form):
    triton_image = _text("Triton", "For new revisions and the runtime in each namespace.")
    triton_vllm_image = _text("Triton with vLLM", "For new triton-vllm revisions.")
    vllm_image = _text("vLLM", "For new kserve-vllm revisions.")
    storage_image = _text("Storage initializer", "Downloads models for the plain Triton engines.")
    role_arn = _text(
        "IAM role per team (IRSA)",
        "Pods assume it to read the bucket. {team} is replaced with the team's short name.",
    )
    storage_secret = _text(
        "Secret with S3 keys",
        "Used instead of a role. Create one with this name in each team's namespace, with keys that "
        "read that team's models only.",
    )
    prometheus_url = _text("Prometheus for KEDA", "The address inside the cluster.")
    cache_node_group = _text("Model cache node group", "A KServe LocalModelNodeGroup.")
    allowed_images = _lines(
        "Allowed images",
        "One per line: registry/name, registry/path/* for everything below it, or "
        "registry/name@sha256 to require a digest.",
    )
    priority_classes = _lines("Allowed priority classes", "One per line.")
    gateway_namespaces = _lines(
        "Gateway proxy namespaces",
        "One per line, in addition to the Gateway's own namespace. Envoy Gateway: envoy-gateway-system.",
    )
    egress_cidrs = _lines(
        "HTTPS egress networks", "One per line, for example: the bucket, STS, a model hub."
    )
    control_plane_cidrs = _lines(
        "API server networks",
        "One per line; on EKS, the subnets of the cluster. Golden requests and trials come from them.",
    )
    pod_security = forms.ChoiceField(
        label="Pod Security",
        required=False,
        choices=[("", "restricted"), ("baseline", "baseline")],
        help_text="Enforced in team namespaces. Pipelines, and Istio without its CNI plugin, need "
        "baseline.",
    )

    def policy(self) -> ServingPolicy:
        texts = {name: self.cleaned_data[name].strip() for name in _NAMES}
        lists = {name: serving_rules.split(texts[name]) for name in serving_rules.LISTS}
        return ServingPolicy(**{**texts, **lists})


@require_http_methods(["GET", "POST"])
@people_only
def edit_serving(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    info = clusters.get_cluster(cluster_id)
    form = ServingForm(request.POST or None, initial=_texts_of(info.serving))
    for name, text in _texts_of(default_serving_policy.default_policy()).items():
        form.fields[name].widget.attrs["placeholder"] = text
    if request.method == "POST" and form.is_valid() and _save(user, cluster_id, form):
        messages.success(
            request, f"Serving settings saved. They apply to new revisions on {info.name}."
        )
        return redirect("admin-cluster", cluster_id=cluster_id)
    status = 422 if form.errors else 200
    context = {"form": form, "info": info}
    return render(request, "clusters/admin_cluster_serving.html", context, status=status)


def _texts_of(serving: ServingPolicy) -> dict[str, str]:
    texts = serving.to_json()
    return {
        **texts,
        **{name: "\n".join(texts[name]) for name in serving_rules.LISTS if name in texts},
    }


def _save(user: User, cluster_id: int, form: ServingForm) -> bool:
    try:
        cluster_serving_policy.set_policy(actor=user, cluster_id=cluster_id, serving=form.policy())
    except Invalid as error:
        add_to(form, error)
        return False
    return True
