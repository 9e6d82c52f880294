"""Callers with a JWT of an identity provider, at Envoy Gateway: what its SecurityPolicy says.

The proxies fetch the provider's keys themselves. Only callers that are listed by the value of a claim get
answers; everyone else with a valid token is refused with 403.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deployments.access.domain.callers import MOST_VALUES, Callers, IdentityProvider, RequiredClaim
from deployments.access.domain.headers import CALLER_HEADER
from deployments.access.domain.kind import AccessKind, Credential
from fleet.clusters.domain.capabilities import Offer

# Stated, because by default a token may also be in the URL, which ends in access logs.
_HEADERS: Final = (
    {"name": "Authorization", "valuePrefix": "Bearer "},
    {"name": "x-api-key"},
)


class ProviderTokens(AccessKind):
    name = "jwt"
    label = "Callers with a token of the company's identity provider"
    noun = "Tokens"
    description = (
        "Only callers listed on the Callers tab can call it, with a token of the identity provider."
    )
    requirement = "Callers need a token."
    option = "caller-jwt"
    fix = "Set {path} to keys, or ask a platform admin for Envoy Gateway 1.5 or newer."
    creates = Credential.CLAIM
    creation_help = (
        "With token_issuer and claim_value there is no key: the caller "
        "sends tokens of that issuer where the spec has network.access jwt."
    )
    takes_issuer = True
    # The gateway passes the token on otherwise.
    removed_headers = tuple(header["name"] for header in _HEADERS)
    curl_arguments = '-H "x-api-key: $KEY" '
    key_header = "x-api-key"

    def security(self, callers: Callers) -> Mapping[str, Any]:
        """Return the JWT provider and the authorization rules. Nobody is served if no claim value is listed."""
        issuer = callers.issuer
        if issuer is None:
            raise ValueError("Callers with tokens need the issuer of the tokens.")
        provider = {
            "name": issuer.name,
            "issuer": issuer.url,
            "audiences": list(issuer.audiences),
            "remoteJWKS": {"uri": issuer.jwks_url},
            "extractFrom": {"headers": [dict(header) for header in _HEADERS]},
            # It replaces what a caller sends there.
            "claimToHeaders": [{"claim": issuer.claim, "header": CALLER_HEADER}],
        }
        rules = [
            {
                "name": f"callers-{number}",
                "action": "Allow",
                "principal": {"jwt": {"provider": issuer.name, "claims": claims}},
            }
            for number, claims in enumerate(_claims(issuer, sorted(callers.claim_values)))
        ]
        return {
            "jwt": {"providers": [provider]},
            "authorization": {"defaultAction": "Deny", "rules": rules},
        }

    def route_state(self, generation: int, issuer: str) -> str:
        return f"{issuer}.{generation}"

    def label_for(self, issuer: str) -> str:
        return f"Callers with a token of {issuer}"

    def describe_current(self, issuer: str) -> str:
        return f"tokens of {issuer}"

    def describe_need(self, issuer: str) -> str:
        return f"callers send tokens of {issuer}"

    def why_not_callable_by_pipeline(self, deployment: str, cluster: str, offer: Offer) -> str:
        return f"{deployment} needs a token of an identity provider, and a pipeline has only a key."


KIND: Final = ProviderTokens()


def _claims(issuer: IdentityProvider, callers: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Yield the claims of each rule: a batch of callers and a batch of the values of each required claim. One rule
    for each combination says the same as all values in one.
    """
    required = [[(one, values) for values in _batches(one.values)] for one in issuer.required]
    named = RequiredClaim(issuer.claim, ())
    for values in _batches(callers):
        for combination in itertools.product([(named, values)], *required):
            yield [
                {
                    "name": one.claim,
                    "valueType": "StringArray" if one.is_list else "String",
                    "values": list(batch),
                }
                for one, batch in combination
            ]


def _batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), MOST_VALUES):
        yield values[start : start + MOST_VALUES]
