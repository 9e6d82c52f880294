"""The form of a canary: a rollout plan, and who may call the address once it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from django import forms

from deployments.models import Deployment, ModelVersion
from deployments.plans.web.plan_form import PlanForm
from deployments.spec.domain import access, serving_spec
from deployments.spec.domain.pod_settings import KEYS, OPEN, Access, Network
from fleet.clusters.domain.capabilities import Capabilities
from portal.core.definitions import fields_of

_LABELS: Final = fields_of(Network)["access"].choices
_DESCRIPTIONS: Final = {str(value): text for value, text in access.DESCRIPTIONS.items()}


class CanaryForm(PlanForm):
    """The version that serves can be chosen too, where who may call is what changes."""

    renamed: ClassVar[Mapping[str, str]] = {
        **PlanForm.renamed,
        "network.access": "access",
        "network.team_address": "access",
    }

    access = forms.ChoiceField(label="Callers", required=False)

    def __init__(self, *args: Any, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stable = deployment.stable_revision
        self._serving: ModelVersion | None = stable.version if stable else None
        current = serving_spec.stored(stable.spec).network.access if stable else KEYS
        other: Access = OPEN if current == KEYS else KEYS
        field = cast("forms.ChoiceField", self.fields["access"])
        offer = Capabilities.from_json(deployment.cluster.capabilities).offers("caller-keys")
        is_offered = other == OPEN or offer.ok is True
        field.choices = [
            ("", f"As now: {_LABELS[current]}"),
            *([(other, _LABELS[other])] if is_offered else []),
        ]
        field.help_text = (
            "For the whole address, once the candidate is the stable revision."
            if is_offered
            else f"Keys cannot be chosen: {offer.why}"
        )
        if self._serving is not None:
            version = cast("forms.ChoiceField", self.fields["version"])
            others = cast("list[tuple[str, str]]", version.choices)
            version.choices = [
                *others,
                (str(self._serving.pk), f"{self._serving.label} · serves now"),
            ]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        is_same = self._serving is not None and data.get("version") == str(self._serving.pk)
        if is_same and not data.get("access") and "keep" not in self.data:
            self.add_error(
                "version", "This version serves already. Choose another one, or other callers."
            )
        return data

    @property
    def access_value(self) -> str:
        """Empty: as it is now."""
        return str(self["access"].value() or "")

    @property
    def access_consequence(self) -> str:
        return _DESCRIPTIONS.get(self.access_value, "")
