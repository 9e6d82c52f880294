"""The callers of a deployment, as a kind of access reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

# Envoy Gateway 1.5 takes this many values of one claim, and 1.6 more; of rules it takes any number.
MOST_VALUES: Final = 16


@dataclass(frozen=True, slots=True)
class RequiredClaim:
    """A claim that a token must have with one of these values. `is_list` means that the claim is a list, for
    example of groups.
    """

    claim: str
    values: tuple[str, ...]
    is_list: bool = False

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> RequiredClaim:
        return cls(row["claim"], tuple(row["values"]), bool(row["is_list"]))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """An identity provider. `claim` names the caller; nested claims have dots."""

    name: str
    url: str
    jwks_url: str
    audiences: tuple[str, ...]
    claim: str
    required: tuple[RequiredClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers of a deployment now. `secret` names the Secret with the keys; `claim_values` are those of the
    issuer's claim.

    `issuer` is set for a kind that takes one.
    """

    secret: str
    issuer: IdentityProvider | None = None
    claim_values: Sequence[str] = ()
