"""The form of an environment's rules."""

from __future__ import annotations

from typing import Any, cast

from django import forms

from deployments.environments.domain import environment_rules
from deployments.environments.domain.environment_rules import (
    MOST_APPROVALS,
    ApproverGroup,
    EnvironmentRules,
)
from fleet.clusters.selectors import clusters
from portal.ui.service_form import ServiceForm

_ROLES = (
    (ApproverGroup.LEAD.value, "Team leads and platform admins"),
    (ApproverGroup.ADMIN.value, "Platform admins only"),
)


class EnvironmentForm(ServiceForm):
    """The rules of an environment. Fields that do not apply are left out: clusters for a team, promotion for the
    first environment.
    """

    approvals = forms.IntegerField(
        label="Approvals",
        min_value=1,
        max_value=MOST_APPROVALS,
        help_text="From different people, never the requester.",
    )
    role = forms.ChoiceField(label="Approvers", choices=_ROLES)
    promoted_from = forms.ChoiceField(
        label="Promoted from",
        required=False,
        help_text="A version must have served there with its rollout completed.",
    )
    golden_required = forms.BooleanField(
        label="Golden requests must have passed",
        required=False,
        help_text="In the environment that it is promoted from; if none, the model must have golden requests.",
    )
    callers_need_key = forms.BooleanField(
        label="Callers need a key",
        required=False,
        help_text="Public addresses are refused.",
    )
    stop_needs_approval = forms.BooleanField(
        label="Stopping needs approval",
        required=False,
        help_text="Applies once a deployment has served. Pausing or aborting a rollout never needs approval.",
    )
    clusters = forms.MultipleChoiceField(
        label="Reserved clusters",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="They admit only environments that list them.",
    )

    def __init__(self, *args: Any, environment: str, is_platform: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        sources = environment_rules.sources_of(environment)
        if sources:
            choices = [("", "Not required"), *((source.value, source.value) for source in sources)]
            cast("forms.ChoiceField", self.fields["promoted_from"]).choices = choices
        else:
            del self.fields["promoted_from"]
        if is_platform:
            known = [(str(cluster.id), cluster.name) for cluster in clusters.list_clusters()]
            cast("forms.MultipleChoiceField", self.fields["clusters"]).choices = known
        else:
            del self.fields["clusters"]

    @property
    def rules(self) -> EnvironmentRules:
        data = self.cleaned_data
        return EnvironmentRules(
            approvals=data["approvals"],
            role=data["role"],
            stop_needs_approval=data["stop_needs_approval"],
            callers_need_key=data["callers_need_key"],
            golden_required=data["golden_required"],
            promoted_from=data.get("promoted_from", ""),
        )

    @property
    def cluster_ids(self) -> tuple[int, ...]:
        return tuple(int(pk) for pk in self.cleaned_data.get("clusters", ()))
