"""Forms of the admin pages. They read; the services decide."""

from __future__ import annotations

from decimal import Decimal
from typing import TypedDict

from django import forms

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
