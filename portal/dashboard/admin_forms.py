"""Forms of the admin pages. They read; the services decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from decimal import Decimal
from typing import Any, TypedDict

from django import forms

from deployments.models import GitDelivery
from deployments.services.git_delivery import GitDraft
from fleet.domain.certificates import MOST_BYTES
from fleet.services.clusters import ClusterDraft
from portal.accounts.models import Role, Team


class Limits(TypedDict):
    quota_gpus: int
    monthly_budget_amount: Decimal


class NewTeam(Limits):
    slug: str
    name: str


class Member(TypedDict):
    username: str
    role: str


class LimitsForm(forms.Form):
    quota_gpus = forms.IntegerField(
        label="GPU quota",
        min_value=0,
        max_value=10_000,
        help_text="Most GPUs the team's deployments may hold at their largest.",
        widget=forms.NumberInput(attrs={"data-unit": "GPUs"}),
    )
    monthly_budget_amount = forms.DecimalField(
        label="Budget",
        min_value=0,
        max_digits=12,
        decimal_places=2,
        help_text="Change requests that would pass it say so; nothing is stopped by it.",
        widget=forms.NumberInput(attrs={"data-unit": "$ a month", "step": "0.01"}),
    )

    @classmethod
    def of(cls, team: Team) -> LimitsForm:
        return cls(
            initial={
                "quota_gpus": team.quota_gpus,
                "monthly_budget_amount": team.monthly_budget_amount,
            }
        )

    def values(self) -> Limits:
        data = self.cleaned_data
        return Limits(
            quota_gpus=data["quota_gpus"], monthly_budget_amount=data["monthly_budget_amount"]
        )


class TeamForm(LimitsForm):
    slug = forms.CharField(
        label="Short name",
        max_length=32,
        help_text="Also its Kubernetes namespace: lower-case letters, digits and '-'. It stays.",
    )
    name = forms.CharField(max_length=80)
    field_order = ("slug", "name", "quota_gpus", "monthly_budget_amount")

    def values(self) -> NewTeam:
        limits = super().values()
        return NewTeam(slug=self.cleaned_data["slug"], name=self.cleaned_data["name"], **limits)


class MemberForm(forms.Form):
    username = forms.CharField(
        label="Person",
        max_length=150,
        help_text="Their sign-in name. Changes the role of a member.",
    )
    role = forms.ChoiceField(
        choices=[
            (Role.VIEWER, "viewer: sees everything of the team"),
            (Role.MEMBER, "member: uploads and requests changes"),
            (Role.LEAD, "lead: approves, promotes, manages members"),
        ],
        initial=Role.MEMBER,
    )

    def values(self) -> Member:
        return Member(username=self.cleaned_data["username"], role=self.cleaned_data["role"])


class ClusterForm(forms.Form):
    """For a new cluster, or with `draft` for the connection of one that is registered."""

    name = forms.CharField(
        max_length=40, help_text="Lower-case letters, digits and '-'. It stays, also in Git."
    )
    kind = forms.ChoiceField(
        label="How it is reached",
        choices=[
            ("eks", "Amazon EKS, with the portal's own AWS role or one that it assumes"),
            ("kubeconfig", "kubeconfig file"),
            ("in-cluster", "the cluster the portal runs in"),
            ("local", "embedded local cluster"),
        ],
    )
    region = forms.CharField(
        max_length=30, initial="us-east-1", help_text="Prices are those of this region."
    )
    eks_name = forms.CharField(label="Name in EKS", max_length=100, required=False)
    role_arn = forms.CharField(
        label="AWS role to assume",
        max_length=200,
        required=False,
        help_text="Such as arn:aws:iam::123456789012:role/slipway. Empty: the portal's own role.",
    )
    kubeconfig_path = forms.CharField(
        label="Path of the kubeconfig",
        max_length=400,
        required=False,
        help_text="Read by the portal and its workers; never copied.",
    )
    gateway_url = forms.CharField(
        label="Gateway address",
        max_length=200,
        help_text="Where clients send requests, such as https://models.example.com",
    )
    gateway_namespace = forms.CharField(
        label="Namespace of the Gateway",
        max_length=63,
        required=False,
        initial="slipway-gateway",
    )
    gateway_name = forms.CharField(
        label="Name of the Gateway", max_length=63, required=False, initial="slipway"
    )
    prometheus_url = forms.CharField(
        label="Prometheus address",
        max_length=200,
        required=False,
        help_text="As the portal reaches it, such as https://prometheus.example.com. Every team that "
        "deploys here may ask it anything, but is shown one number. Empty: no PromQL guards and no "
        "percentiles.",
    )
    prometheus_token_path = forms.CharField(
        label="Path of its token",
        max_length=400,
        required=False,
        help_text="A file with a bearer token, read by the portal and its workers; never copied.",
    )
    has_prometheus_sigv4 = forms.BooleanField(
        label="Amazon Managed Prometheus",
        required=False,
        help_text="Signs requests with the AWS role that EKS is reached with, or the portal's own. "
        "The role needs aps:QueryMetrics.",
    )
    prometheus_ca_pem = forms.CharField(
        label="Certificates that sign it",
        max_length=MOST_BYTES,
        required=False,
        help_text="As PEM, for a private authority: only these are trusted. Empty: the public ones.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, draft: ClusterDraft | None = None
    ) -> None:
        super().__init__(data, initial=asdict(draft) if draft else None)
        if draft is not None:
            # The name is what it is registered by: another one would be another cluster.
            self.fields["name"].disabled = True

    def draft(self) -> ClusterDraft:
        """What was left empty has the default of the draft."""
        return ClusterDraft(**{name: value for name, value in self.cleaned_data.items() if value})


class GitForm(forms.Form):
    """How a team's changes reach its clusters."""

    way = forms.ChoiceField(
        label="Changes reach the cluster",
        choices=[
            ("straight", "straight: the portal applies them"),
            ("git", "through Git: Argo CD or Flux applies what is committed"),
        ],
    )
    repository_url = forms.CharField(
        label="Repository",
        max_length=300,
        required=False,
        help_text="Such as https://git.example.com/platform/fleet.git",
    )
    branch = forms.CharField(max_length=100, initial="main")
    path = forms.CharField(
        label="Folder in it", max_length=200, required=False, help_text="Empty: the top."
    )
    username = forms.CharField(max_length=100, required=False)
    credential = forms.CharField(
        label="Token",
        max_length=100,
        required=False,
        help_text="The name of its file in the folder of Git credentials, not the token itself.",
    )

    @classmethod
    def of(cls, delivery: GitDelivery | None) -> GitForm:
        if delivery is None:
            return cls()
        names = [field.name for field in fields(GitDraft)]
        now = {name: getattr(delivery, name) for name in names}
        return cls(initial=now | {"way": "git" if delivery.is_enabled else "straight"})

    def draft(self) -> GitDraft:
        values = dict(self.cleaned_data)
        return GitDraft(is_enabled=values.pop("way") == "git", **values)
