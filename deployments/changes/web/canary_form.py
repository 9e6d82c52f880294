"""The form of a canary: a rollout plan, and who may call the address once it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from django import forms

from deployments.callers.selectors import token_issuers
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, ModelVersion
from deployments.plans.web.plan_form import PlanForm
from deployments.spec.domain import access, serving_spec
from deployments.spec.domain.pod_settings import JWT, KEYS, OPEN, Network
from fleet.clusters.domain.capabilities import Capabilities
from portal.core.definitions import fields_of

_WAYS: Final = (KEYS, OPEN)
_LABELS: Final = fields_of(Network)["access"].choices
_DESCRIPTIONS: Final = {str(value): text for value, text in access.DESCRIPTIONS.items()}


class CanaryForm(PlanForm):
    """The version that serves can be chosen too, where who may call is what changes."""

    renamed: ClassVar[Mapping[str, str]] = {
        **PlanForm.renamed,
        "network.access": "access",
        "network.team_address": "access",
        "network.token_issuer": "access",
    }

    access = forms.ChoiceField(label="Callers", required=False)

    def __init__(self, *args: Any, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stable = deployment.stable_revision
        self._serving: ModelVersion | None = stable.version if stable else None
        current = serving_spec.stored(stable.spec).network.access if stable else KEYS
        field = cast("forms.ChoiceField", self.fields["access"])
        capabilities = Capabilities.from_json(deployment.cluster.capabilities)
        offer = capabilities.offers("caller-keys")
        others: list[tuple[str, str]] = [(kind, _LABELS[kind]) for kind in _WAYS if kind != current]
        if offer.ok is not True:
            others = [(kind, label) for kind, label in others if kind != KEYS]
        if capabilities.offers("caller-jwt").ok is True:
            others += _with_tokens(deployment)
        field.choices = [("", f"As now: {_describe_now(deployment, current)}"), *others]
        field.help_text = (
            "For the whole address, once the candidate is the stable revision."
            if offer.ok is True or current == KEYS
            else f"Keys cannot be chosen: {offer.why}"
        )
        if self._serving is not None:
            version = cast("forms.ChoiceField", self.fields["version"])
            versions = cast("list[tuple[str, str]]", version.choices)
            version.choices = [
                *versions,
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
        return _DESCRIPTIONS.get(self.access_value.partition(":")[0], "")


def _describe_now(deployment: Deployment, access: str) -> str:
    spec = rendering.stable_spec_of(deployment)
    issuer = spec.network.token_issuer if spec is not None and access == JWT else ""
    return f"tokens of {issuer}" if issuer else _LABELS[access]


def _with_tokens(deployment: Deployment) -> list[tuple[str, str]]:
    """A choice for each issuer but the one whose tokens it takes now."""
    spec = rendering.stable_spec_of(deployment)
    now = spec.network.token_issuer if spec is not None else ""
    return [
        (f"{JWT}:{row.name}", f"Callers with a token of {row.name}")
        for row in token_issuers.of_cluster(deployment.cluster_id)
        if row.name != now
    ]
