"""Forms of the admin pages. They read; the services decide."""

from __future__ import annotations

from decimal import Decimal
from typing import TypedDict

from django import forms

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
    name = forms.CharField(
        max_length=40, help_text="The name of a registered cluster changes its connection."
    )
    kind = forms.ChoiceField(
        choices=[
            ("eks", "Amazon EKS, with the portal's own AWS role"),
            ("kubeconfig", "kubeconfig file"),
            ("in-cluster", "the cluster the portal runs in"),
            ("local", "embedded local cluster"),
        ]
    )
    eks_name = forms.CharField(label="Name in EKS", max_length=100, required=False)
    kubeconfig_path = forms.CharField(
        label="Path of the kubeconfig",
        max_length=400,
        required=False,
        help_text="Read by the portal and its workers; never copied.",
    )
    region = forms.CharField(
        max_length=30, initial="us-east-1", help_text="Prices are those of this region."
    )
    gateway_url = forms.CharField(
        label="Gateway address",
        max_length=200,
        help_text="Where clients send requests, such as https://models.example.com",
    )

    def draft(self) -> ClusterDraft:
        data = self.cleaned_data
        return ClusterDraft(
            name=data["name"],
            kind=data["kind"],
            gateway_url=data["gateway_url"],
            region=data["region"],
            kubeconfig_path=data["kubeconfig_path"],
            eks_name=data["eks_name"],
        )
