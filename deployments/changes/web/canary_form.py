"""The form of a canary: a rollout plan, and who may call the address once it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from django import forms

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.callers.selectors import token_issuers
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, ModelVersion
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

    def __init__(self, *args: Any, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
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

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
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
