"""The form of a token issuer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from django import forms

from deployments.access.domain.callers import RequiredClaim
from deployments.callers.services import token_issuers
from deployments.callers.services.token_issuers import IssuerDraft
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.ui.service_form import ServiceForm


class IssuerForm(ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = {
        "cluster_id": "cluster",
        "required_claims": "required",
    }

    name = forms.CharField(
        max_length=40, help_text="Deployments refer to it by this name. A name is never reused."
    )
    cluster = forms.ChoiceField(required=False, label="For")
    url = forms.CharField(
        max_length=token_issuers.LONGEST_URL,
        label="Issuer URL",
        help_text="Exactly as in the tokens' iss claim.",
    )
    jwks_url = forms.CharField(
        max_length=token_issuers.LONGEST_URL,
        label="JWKS URL",
        help_text="The gateways' proxies fetch the public keys there: it must be reachable from the cluster.",
    )
    audiences = forms.CharField(
        max_length=2000, help_text="Comma-separated. A token must have one of them in aud."
    )
    claim = forms.CharField(
        max_length=token_issuers.LONGEST_CLAIM,
        initial="sub",
        label="Caller's claim",
        help_text="For example sub, or client_id for services. Nested claims with dots.",
    )
    required = forms.CharField(
        required=False,
        max_length=10_000,
        label="Required claims",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "mono"}),
        help_text="One per line: claim=value, or claim[]=value for a list such as groups. Repeat a claim to "
        "accept any of several values. Leave empty for none.",
    )

    def __init__(self, *args: Any, clusters: Iterable[ClusterInfo], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = [(str(row.id), row.name) for row in clusters]
        field = cast("forms.ChoiceField", self.fields["cluster"])
        field.choices = [("", "All clusters"), *named]

    def clean_required(self) -> list[RequiredClaim]:
        values: dict[tuple[str, bool], list[str]] = {}
        for line in self.cleaned_data["required"].split("\n"):
            named, is_pair, value = (part.strip() for part in line.partition("="))
            if line.strip() and not is_pair:
                raise forms.ValidationError(f"Write claim=value, not {line.strip()[:80]}.")
            if is_pair:
                key = (named.removesuffix("[]"), named.endswith("[]"))
                values.setdefault(key, []).append(value)
        return [
            RequiredClaim(claim, tuple(listed), is_list)
            for (claim, is_list), listed in values.items()
        ]

    def draft(self) -> IssuerDraft:
        data = self.cleaned_data
        parts = (part.strip() for part in data["audiences"].split(","))
        return IssuerDraft(
            name=data["name"].strip(),
            cluster_id=int(data["cluster"]) if data["cluster"] else None,
            url=data["url"].strip(),
            jwks_url=data["jwks_url"].strip(),
            audiences=[part for part in parts if part],
            claim=data["claim"].strip(),
            required_claims=data["required"],
        )
