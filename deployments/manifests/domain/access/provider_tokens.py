"""Callers with a JWT of an identity provider, at Envoy Gateway: its SecurityPolicy.

The proxies fetch the provider's keys themselves. Only callers that are listed by the value of a claim get
answers; everyone else with a valid token is refused with 403.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import Manifest, ManifestContext, metadata

# Envoy Gateway 1.5 takes this many values of one claim, and 1.6 more; of rules it takes any number.
MOST_VALUES: Final = 16
# Stated, because by default a token may also be in the URL, which ends in access logs.
_HEADERS: Final = (
    {"name": "Authorization", "valuePrefix": "Bearer "},
    {"name": "x-api-key"},
)


@dataclass(frozen=True, slots=True)
class RequiredClaim:
    """A token must have one of these values; `is_list`: the claim is a list, for example of groups."""

    claim: str
    values: tuple[str, ...]
    is_list: bool = False

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> RequiredClaim:
        return cls(row["claim"], tuple(row["values"]), bool(row["is_list"]))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Issuer:
    """`claim` names the caller; nested claims have dots."""

    name: str
    url: str
    jwks_url: str
    audiences: tuple[str, ...]
    claim: str
    required: tuple[RequiredClaim, ...] = ()


def policy(context: ManifestContext, issuer: Issuer, callers: Sequence[str]) -> Manifest:
    """`callers` are values of the issuer's claim. Without any nobody is served."""
    provider = {
        "name": issuer.name,
        "issuer": issuer.url,
        "audiences": list(issuer.audiences),
        "remoteJWKS": {"uri": issuer.jwks_url},
        "extractFrom": {"headers": [dict(header) for header in _HEADERS]},
        # It replaces what a caller sends there.
        "claimToHeaders": [{"claim": issuer.claim, "header": caller_keys.CALLER_HEADER}],
    }
    rules = [
        {
            "name": f"callers-{number}",
            "action": "Allow",
            "principal": {"jwt": {"provider": issuer.name, "claims": claims}},
        }
        for number, claims in enumerate(_claims(issuer, sorted(callers)))
    ]
    return {
        "apiVersion": caller_keys.API_VERSION,
        "kind": caller_keys.KIND,
        "metadata": metadata(context, context.deployment),
        "spec": {
            "targetRefs": [caller_keys.route_of(context)],
            "jwt": {"providers": [provider]},
            "authorization": {"defaultAction": "Deny", "rules": rules},
        },
    }


def without_credentials(route: Manifest) -> Manifest:
    """The route, each rule of which removes the token: the gateway passes it on otherwise."""
    return caller_keys.without_headers(route, [header["name"] for header in _HEADERS])


def _claims(issuer: Issuer, callers: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
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
