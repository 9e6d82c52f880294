"""Forms of the admin pages. They parse input; the services validate it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, TypedDict

from django import forms

from deployments.approvals.web.admin_forms import Delegate
from portal.accounts.models import Role, Team
from portal.core import clock


class Limits(TypedDict):
    quota_gpus: int
    monthly_budget_amount: Decimal
    is_budget_binding: bool


class NewTeam(Limits):
    slug: str
    name: str


class Member(TypedDict):
    username: str
    role: str


class LimitsForm(forms.Form):
    quota_gpus = forms.IntegerField(
        label="Quota",
        min_value=0,
        max_value=10_000,
        help_text="For deployments at max replicas and batch jobs together. 0 stops new requests.",
        widget=forms.NumberInput(attrs={"data-unit": "GPUs or devices"}),
    )
    monthly_budget_amount = forms.DecimalField(
        label="Monthly budget",
        min_value=0,
        max_digits=12,
        decimal_places=2,
        help_text="Requests above it show a warning, and the team is notified at 50, 80 and 100%. 0 means no budget.",
        widget=forms.NumberInput(attrs={"data-unit": "$ / month", "step": "0.01"}),
    )
    is_budget_binding = forms.BooleanField(
        label="Refuse requests over budget",
        required=False,
        help_text="Changes that cost no more than before are still allowed.",
    )

    @classmethod
    def for_team(cls, team: Team) -> LimitsForm:
        return cls(
            initial={
                "quota_gpus": team.quota_gpus,
                "monthly_budget_amount": team.monthly_budget_amount,
                "is_budget_binding": team.is_budget_binding,
            }
        )

    def values(self) -> Limits:
        data = self.cleaned_data
        return Limits(
            quota_gpus=data["quota_gpus"],
            monthly_budget_amount=data["monthly_budget_amount"],
            is_budget_binding=data["is_budget_binding"],
        )


class TeamForm(LimitsForm):
    slug = forms.CharField(
        label="Short name",
        max_length=32,
        help_text="Also its Kubernetes namespace. Lowercase letters, digits and '-'. Can't be changed later.",
    )
    name = forms.CharField(max_length=80)
    field_order = ("slug", "name", "quota_gpus", "monthly_budget_amount", "is_budget_binding")

    def values(self) -> NewTeam:
        limits = super().values()
        return NewTeam(slug=self.cleaned_data["slug"], name=self.cleaned_data["name"], **limits)


ROLE_CHOICES: Final = (
    (Role.VIEWER, "Viewer: sees everything in the team"),
    (Role.MEMBER, "Member: uploads and requests changes"),
    (Role.LEAD, "Lead: approves, promotes and manages members"),
)


class MemberForm(forms.Form):
    username = forms.CharField(
        label="Username",
        max_length=150,
        help_text="The name they sign in with. For an existing member, this changes the role.",
    )
    role = forms.ChoiceField(
        choices=ROLE_CHOICES,
        initial=Role.MEMBER,
    )

    def values(self) -> Member:
        return Member(username=self.cleaned_data["username"], role=self.cleaned_data["role"])


class DelegateForm(forms.Form):
    # The form has dates, the service times.
    RENAMED: ClassVar[dict[str, str]] = {"starts_at": "starts_on", "ends_at": "ends_on"}

    username = forms.CharField(
        label="Delegate", max_length=150, help_text="Username of a team member."
    )
    starts_on = forms.DateField(
        label="First day", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    ends_on = forms.DateField(
        label="Last day",
        help_text="Included. UTC; 60 days at most.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    reason = forms.CharField(
        max_length=300, help_text="For the audit trail, for example: vacation, sick leave."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The page has another form with a username.
        super().__init__(*args, **{"auto_id": "delegate_%s", **kwargs})

    def values(self) -> Delegate:
        data, now = self.cleaned_data, clock.now()
        first = data["starts_on"]
        begin = datetime.combine(first, time(), tzinfo=UTC) if first else now
        after = data["ends_on"] + timedelta(days=1)
        return Delegate(
            username=data["username"],
            starts_at=max(begin, now),
            ends_at=datetime.combine(after, time(), tzinfo=UTC),
            reason=data["reason"],
        )
