"""The callers that get answers at an address, as a spec states it and as a change alters it."""

from __future__ import annotations

from deployments.access.domain import catalogue
from deployments.spec.domain.serving_spec import ServingSpec


def keep_access(spec: ServingSpec, current: ServingSpec) -> ServingSpec:
    """Return the spec with the access of what serves now, unless it states its own."""
    if "network" in spec.model_fields_set and "access" in spec.network.model_fields_set:
        return spec
    return with_access(spec, current.network.access, current)


def with_access(spec: ServingSpec, access: str, current: ServingSpec) -> ServingSpec:
    """Return the spec with this access. `access` names a kind. One that takes an issuer of tokens has that of
    the spec or of what serves now, or another whose name follows a colon.
    """
    kind, _, named = access.partition(":")
    issuer = named or spec.network.token_issuer or current.network.token_issuer
    changed = {
        "access": kind,
        "token_issuer": issuer if kind in catalogue.names_with_issuer() else "",
    }
    return spec.replace(network=spec.network.replace(**changed))
