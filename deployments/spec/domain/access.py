"""Who gets answers at an address, as a spec states it and as a change alters it."""

from __future__ import annotations

from typing import Final

from deployments.spec.domain.pod_settings import JWT, KEYS, OPEN
from deployments.spec.domain.serving_spec import ServingSpec

DESCRIPTIONS: Final = {
    KEYS: "Only callers with a key get answers.",
    JWT: "Only callers with a token of the identity provider, listed on the tab Callers, get answers.",
    OPEN: "Everyone who reaches the gateway gets answers, without a key.",
}


def kept(spec: ServingSpec, current: ServingSpec) -> ServingSpec:
    """The spec with the access of what serves now, unless it states its own."""
    if "network" in spec.model_fields_set and "access" in spec.network.model_fields_set:
        return spec
    return with_access(spec, current.network.access, current)


def with_access(spec: ServingSpec, access: str, current: ServingSpec) -> ServingSpec:
    """The spec with this access. `access` is open, keys, jwt with the issuer of tokens that the spec or what
    serves now has, or `jwt:` and the name of another.
    """
    kind, _, named = access.partition(":")
    issuer = named or spec.network.token_issuer or current.network.token_issuer
    changed = {"access": kind, "token_issuer": issuer if kind == JWT else ""}
    return spec.replace(network=spec.network.replace(**changed))
