"""The form of a cluster's connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django import forms
from django.conf import settings

from fleet.clusters.domain.ca_bundle import MAX_BYTES
from fleet.clusters.services.clusters import ClusterDraft


class ClusterForm(forms.Form):
    """The form that registers a new cluster or, with `draft`, changes the connection of a registered one."""

    name = forms.CharField(
        max_length=40, help_text="Lowercase letters, digits and '-'. Can't be changed later."
    )
    kind = forms.ChoiceField(
        label="Connection type",
        choices=[
            ("eks", "Amazon EKS"),
            ("kubeconfig", "Kubeconfig file"),
            ("in-cluster", "The cluster that the portal runs in"),
            ("local", "Embedded local cluster"),
        ],
    )
    region = forms.CharField(
        max_length=30, initial="us-east-1", help_text="AWS region. Determines prices."
    )
    eks_name = forms.CharField(label="EKS cluster name", max_length=100, required=False)
    role_arn = forms.CharField(
        label="AWS role to assume",
        max_length=200,
        required=False,
        help_text="For example arn:aws:iam::123456789012:role/slipway. Leave empty to use the portal's own role.",
    )
    kubeconfig_path = forms.CharField(
        label="Kubeconfig path",
        max_length=400,
        required=False,
        help_text=(
            f"A file in {settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR}, by name or full path. The portal "
            "and its workers read it; it is never copied."
        ),
    )
    gateway_url = forms.CharField(
        label="Gateway address",
        max_length=200,
        help_text="Where clients send requests, for example https://models.example.com",
    )
    gateway_namespace = forms.CharField(
        label="Gateway namespace",
        max_length=63,
        required=False,
        initial="slipway-gateway",
    )
    gateway_name = forms.CharField(
        label="Gateway name", max_length=63, required=False, initial="slipway"
    )
    prometheus_url = forms.CharField(
        label="Prometheus address",
        max_length=200,
        required=False,
        help_text="The address that the portal uses, for example https://prometheus.example.com. Teams "
        "that deploy here can run any query, but see only one number. Leave empty for no PromQL "
        "guards and no percentiles.",
    )
    prometheus_token_path = forms.CharField(
        label="Token path",
        max_length=400,
        required=False,
        help_text="A file with a bearer token. The portal and its workers read it; it is never copied.",
    )
    has_prometheus_sigv4 = forms.BooleanField(
        label="Amazon Managed Prometheus",
        required=False,
        help_text="Sign requests with the AWS role of the cluster, or with the portal's own role. "
        "The role needs aps:QueryMetrics.",
    )
    prometheus_ca_pem = forms.CharField(
        label="CA certificates",
        max_length=MAX_BYTES,
        required=False,
        help_text="PEM, for a private authority. Only these are trusted. Leave empty for public ones.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, draft: ClusterDraft | None = None
    ) -> None:
        super().__init__(data, initial=asdict(draft) if draft else None)
        if draft is not None:
            # The name identifies the cluster: another name would register another cluster.
            self.fields["name"].disabled = True

    def draft(self) -> ClusterDraft:
        """Return the entered cluster. Empty fields take the draft's defaults."""
        return ClusterDraft(**{name: value for name, value in self.cleaned_data.items() if value})
