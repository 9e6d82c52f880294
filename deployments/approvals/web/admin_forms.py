"""Forms of approval rules and of delegates."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict, cast

from django import forms

from deployments.approvals.domain.approver_roles import RequiredRole
from deployments.approvals.domain.rules import MOST_NEEDED
from deployments.approvals.services.rules import KINDS, RuleDraft
from deployments.plans.domain import descriptions
from deployments.states import Environment
from portal.accounts.models import Team

_ALL = ("", "All teams")


class RuleForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        help_text="Shown to approvers, for example “Production on H100” or “Over $5,000”.",
    )
    team = forms.ChoiceField(required=False)
    environments = forms.MultipleChoiceField(
        choices=[(e.value, e.value) for e in Environment],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Select none for all.",
    )
    kinds = forms.MultipleChoiceField(
        label="Changes",
        choices=[(kind.value, descriptions.KIND_NAMES[kind]) for kind in KINDS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Select none for all.",
    )
    above_month_amount = forms.DecimalField(
        label="Cost above",
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=2,
        help_text="At max replicas. An unknown price counts as above.",
        widget=forms.NumberInput(attrs={"data-unit": "$ a month", "step": "0.01"}),
    )
    gpus = forms.CharField(
        label="GPUs",
        required=False,
        max_length=600,
        help_text="Comma-separated instance types or GPU names, for example p5.*, h100. Leave empty for any.",
    )
    only_opening = forms.BooleanField(
        label="Only open addresses",
        required=False,
        help_text="Only changes after which callers no longer need a key.",
    )
    needed = forms.IntegerField(
        label="Approvals",
        min_value=1,
        max_value=MOST_NEEDED,
        initial=1,
        help_text="From different people, never the requester.",
    )
    role = forms.ChoiceField(
        label="Approvers",
        choices=[
            (RequiredRole.LEAD.value, "Team leads and platform admins"),
            (RequiredRole.ADMIN.value, "Platform admins only"),
            (RequiredRole.NAMED.value, "Only the people named below"),
        ],
    )
    people = forms.CharField(
        label="Named people",
        required=False,
        max_length=600,
        help_text="Comma-separated sign-in names. They can approve in addition to the approvers above.",
    )

    def __init__(self, *args: Any, teams: list[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [_ALL, *((team.slug, team.name) for team in teams)]
        cast("forms.ChoiceField", self.fields["team"]).choices = choices

    @property
    def conditions_in_words(self) -> str:
        """Name the conditions that the fields state, or "every change" without any."""
        amount = self["above_month_amount"].value()
        stated = (
            self["team"].value(),
            *(self["environments"].value() or ()),
            *(descriptions.KIND_NAMES.get(kind, "") for kind in self["kinds"].value() or ()),
            f"above ${amount} a month" if amount not in (None, "") else "",
            self["gpus"].value(),
            "opens an address" if self["only_opening"].value() else "",
        )
        return ", ".join(str(part) for part in stated if part) or "every change"

    def draft(self, *, is_enabled: bool) -> RuleDraft:
        data = self.cleaned_data
        return RuleDraft(
            name=data["name"],
            team=data["team"],
            environments=tuple(data["environments"]),
            kinds=tuple(data["kinds"]),
            above_month_amount=data["above_month_amount"],
            gpus=_names_in(data["gpus"]),
            only_opening=data["only_opening"],
            role=data["role"],
            people=_names_in(data["people"]),
            needed=data["needed"],
            is_enabled=is_enabled,
        )


def initial_of(draft: RuleDraft) -> dict[str, Any]:
    return {
        "name": draft.name,
        "team": draft.team,
        "environments": list(draft.environments),
        "kinds": list(draft.kinds),
        "above_month_amount": draft.above_month_amount,
        "gpus": ", ".join(draft.gpus),
        "only_opening": draft.only_opening,
        "role": draft.role,
        "people": ", ".join(draft.people),
        "needed": draft.needed,
    }


class Delegate(TypedDict):
    username: str
    starts_at: datetime
    ends_at: datetime
    reason: str


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
