"""The form of a canary: a plan by name, its steps and limits, and who may call the address once it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.http import QueryDict

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.callers.selectors import token_issuers
from deployments.changes.web import plan_choices
from deployments.changes.web.plan_choices import OfferedPlan
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, ModelVersion
from deployments.plans.web import plan_form
from deployments.plans.web.plan_form import PlanForm
from fleet.clusters.domain.capabilities import Capabilities


class CanaryForm(PlanForm):
    """The version that serves can be chosen too, where who may call is what changes."""

    renamed: ClassVar[Mapping[str, str]] = {
        **PlanForm.renamed,
        "network.access": "access",
        "network.team_address": "access",
        "network.token_issuer": "access",
    }

    access = forms.ChoiceField(label="Callers", required=False)
    # Empty: the rows are the whole plan.
    preset = forms.ChoiceField(
        label="How careful", required=False, error_messages={"invalid_choice": "Choose a plan."}
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        deployment: Deployment,
        offered: Sequence[OfferedPlan],
        has_tokens: bool = True,
        **kwargs: Any,
    ) -> None:
        self._offered, self._has_tokens = offered, has_tokens
        self._left_behind = ""
        super().__init__(self._fill(data), has_tokens=has_tokens, **kwargs)
        preset = cast("forms.ChoiceField", self.fields["preset"])
        preset.choices = [(each.value, each.label) for each in offered]
        stable = deployment.stable_revision
        self._serving: ModelVersion | None = stable.version if stable else None
        field = cast("forms.ChoiceField", self.fields["access"])
        field.choices, field.help_text = _choose_access(deployment)
        if self._serving is not None:
            version = cast("forms.ChoiceField", self.fields["version"])
            versions = cast("list[tuple[str, str]]", version.choices)
            version.choices = [
                *versions,
                (str(self._serving.pk), f"{self._serving.label} · serves now"),
            ]

    def _fill(self, data: QueryDict | None) -> QueryDict | None:
        """Fill in the chosen plan where its button was never pressed. What someone changed meanwhile is kept, and
        refused by `clean`.
        """
        if data is None or data.get("preset", "") in ("", data.get("filled", "")):
            return data
        chosen = plan_choices.find_offered(self._offered, data.get("preset", ""))
        before = plan_choices.find_offered(self._offered, data.get("filled", ""))
        if chosen is None:
            return data
        if before is not None and self._is_changed(data, before):
            self._left_behind = before.label
            return data
        filled = data.copy()
        values = plan_form.form_data(chosen.plan, has_tokens=self._has_tokens)
        kept = plan_form.keep_typed(data, before.plan if before else None)
        for name, value in {**values, **kept, "filled": chosen.value}.items():
            filled[name] = value
        return filled

    def _is_changed(self, data: QueryDict, offered: OfferedPlan) -> bool:
        values = plan_form.form_data(offered.plan, has_tokens=self._has_tokens)
        return plan_form.is_plan_changed({name: data.get(name, "") for name in data}, values)

    @property
    def chosen_plan(self) -> OfferedPlan | None:
        return plan_choices.find_offered(self._offered, str(self["preset"].value() or ""))

    @property
    def filled(self) -> str:
        """The plan whose values the fields below began with."""
        name = "filled" if self.is_bound else "preset"
        return str((self.data if self.is_bound else self.initial).get(name, ""))

    @property
    def customised_from(self) -> str:
        """The name of the plan that was changed. Empty if it is as it was chosen."""
        chosen = self.chosen_plan
        if not self.is_bound or chosen is None or self.filled != chosen.value:
            return ""
        return chosen.label if self._is_changed(cast("QueryDict", self.data), chosen) else ""

    @property
    def callers_summary(self) -> str:
        """Say which choice of callers is made."""
        field = cast("forms.ChoiceField", self.fields["access"])
        labels = dict(cast("list[tuple[str, str]]", field.choices))
        return labels.get(str(self["access"].value() or ""), "")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        chosen = self.chosen_plan
        if self._left_behind and chosen is not None:
            self.add_error(
                "preset",
                f"Steps or limits of {self._left_behind} were changed before {chosen.label} was chosen. Choose "
                f"{self._left_behind} to keep them, or fill in {chosen.label} to replace them.",
            )
        is_same = self._serving is not None and data.get("version") == str(self._serving.pk)
        if is_same and not data.get("access") and "keep" not in self.data:
            self.add_error(
                "version",
                "This version is already serving. Choose another version, or other callers.",
            )
        return data

    @property
    def chosen_access(self) -> AccessKind | None:
        """The kind of access that the form requests. None keeps the present one."""
        return catalogue.find(str(self["access"].value() or "").partition(":")[0])


def _choose_access(deployment: Deployment) -> tuple[list[tuple[str, str]], str]:
    """Return the choices, and the help text, which says why one is missing."""
    spec = rendering.stable_spec_of(deployment)
    now, issuer = catalogue.DEFAULT, ""
    if spec is not None:
        now, issuer = spec.network.access_kind, spec.network.token_issuer
    capabilities = Capabilities.from_json(deployment.cluster.capabilities)
    choices, missing = [("", f"Unchanged: {now.describe_current(issuer)}")], []
    for kind in sorted(catalogue.list_for_forms(), key=lambda kind: kind.takes_issuer):
        offer = kind.check_offer(capabilities)
        if kind.takes_issuer:
            choices += _with_issuers(deployment, kind, issuer) if offer.ok is True else []
        elif kind != now and offer.ok is True:
            choices.append((kind.name, kind.label))
        elif kind != now:
            missing.append(f"{kind.noun} cannot be chosen: {offer.why}")
    help_text = "Applies to the whole address once the candidate is the stable revision."
    return choices, " ".join(missing) or help_text


def _with_issuers(deployment: Deployment, kind: AccessKind, now: str) -> list[tuple[str, str]]:
    """List a choice for each issuer but the one whose tokens the address takes now."""
    return [
        (f"{kind.name}:{row.name}", kind.label_for(row.name))
        for row in token_issuers.list_for_cluster(deployment.cluster_id)
        if row.name != now
    ]
