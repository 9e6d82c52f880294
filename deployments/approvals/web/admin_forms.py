"""Forms of approval rules and of delegates."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any, ClassVar, TypedDict, cast

from django import forms

from deployments.domain import wording
from deployments.domain.approvals import MOST_NEEDED, ApproverRole
from deployments.domain.states import Environment
from deployments.services.policies import KINDS, RuleDraft
from portal.accounts.models import Team
from portal.core import clock

_ALL = ("", "all teams")


class RuleForm(forms.Form):
    name = forms.CharField(
        max_length=80, help_text="What approvers read: “Production on H100”, “Over $5,000”."
    )
    team = forms.ChoiceField(required=False)
    environments = forms.MultipleChoiceField(
        choices=[(one.value, one.value) for one in Environment],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: all of them.",
    )
    kinds = forms.MultipleChoiceField(
        label="Changes",
        choices=[(one.value, wording.KIND_NAMES[one]) for one in KINDS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: all of them.",
    )
    above_month_amount = forms.DecimalField(
        label="Above",
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=2,
        help_text="At full scale-out. A price that is not known counts as above.",
        widget=forms.NumberInput(attrs={"data-unit": "$ a month", "step": "0.01"}),
    )
    gpus = forms.CharField(
        label="GPUs",
        required=False,
        max_length=600,
        help_text="Instance types or GPU names with commas: p5.*, h100. Empty: any.",
    )
    needed = forms.IntegerField(
        label="Approvals",
        min_value=1,
        max_value=MOST_NEEDED,
        initial=1,
        help_text="Of different people, never the requester.",
    )
    role = forms.ChoiceField(
        label="Who may give them",
        choices=[
            (ApproverRole.LEAD.value, "leads of the team and platform admins"),
            (ApproverRole.ADMIN.value, "platform admins only"),
            (ApproverRole.NAMED.value, "only the people named below"),
        ],
    )
    people = forms.CharField(
        label="Named people",
        required=False,
        max_length=600,
        help_text="Sign-in names with commas; they may give it besides those above.",
    )

    def __init__(self, *args: Any, teams: list[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [_ALL, *((team.slug, team.name) for team in teams)]
        cast("forms.ChoiceField", self.fields["team"]).choices = choices

    def draft(self, *, is_enabled: bool) -> RuleDraft:
        data = self.cleaned_data
        return RuleDraft(
            name=data["name"],
            team=data["team"],
            environments=tuple(data["environments"]),
            kinds=tuple(data["kinds"]),
            above_month_amount=data["above_month_amount"],
            gpus=_words(data["gpus"]),
            role=data["role"],
            people=_words(data["people"]),
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
        "role": draft.role,
        "people": ", ".join(draft.people),
        "needed": draft.needed,
    }


class Delegate(TypedDict):
    username: str
    starts_at: datetime
    ends_at: datetime
    reason: str


class DelegateForm(forms.Form):
    # Days here, times in the service.
    RENAMED: ClassVar[dict[str, str]] = {"starts_at": "starts_on", "ends_at": "ends_on"}

    username = forms.CharField(
        label="Delegate", max_length=150, help_text="Someone of the team, by sign-in name."
    )
    starts_on = forms.DateField(
        label="From", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    ends_on = forms.DateField(
        label="Until and with",
        help_text="UTC days; at most 60.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    reason = forms.CharField(max_length=300, help_text="For the audit trail: holidays, sick leave.")

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


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
