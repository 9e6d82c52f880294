"""All kinds of access, in the order of REST. A further one is a module in kinds/ and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.access.domain.kind import AccessKind
from deployments.access.domain.kinds import keys, open_address, provider_tokens

KINDS: Final[tuple[AccessKind, ...]] = (
    open_address.KIND,
    keys.KIND,
    provider_tokens.KIND,
)
# Of a spec that states none.
DEFAULT: Final[AccessKind] = keys.KIND
# Of pods that no gateway is in front of, such as those of a job.
UNCHECKED: Final[AccessKind] = open_address.KIND


def names() -> tuple[str, ...]:
    return tuple(kind.name for kind in KINDS)


def names_with_issuer() -> tuple[str, ...]:
    return tuple(kind.name for kind in KINDS if kind.takes_issuer)


def list_for_forms() -> list[AccessKind]:
    """List the kinds as people choose among them: what opens an address comes last."""
    return sorted(KINDS, key=lambda kind: kind.opens_to_everyone)


def find(name: str) -> AccessKind | None:
    return next((kind for kind in KINDS if kind.name == name), None)


def get_kind(name: str) -> AccessKind:
    """Return the kind of access with this name. Raises LookupError if there is none."""
    kind = find(name)
    if kind is None:
        raise LookupError(f"There is no access {name!r}. There are: {', '.join(names())}.")
    return kind


def read_stored(spec: Mapping[str, Any]) -> AccessKind:
    """Read the kind of access from a stored spec without parsing the rest, for hundreds of rows. Raises LookupError."""
    return get_kind(str(spec.get("network", {}).get("access", DEFAULT.name)))
