"""OpenID Connect providers, read from environment variables. No Django: settings are built from it.

SLIPWAY_OIDC lists names; each provider has its variables under its name in capitals:
SLIPWAY_OIDC=okta and SLIPWAY_OIDC_OKTA_ISSUER, …_CLIENT_ID, …_CLIENT_SECRET and others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from portal import env
from portal.accounts.oidc import rules
from portal.accounts.oidc.rules import Rule

_VARIABLE: Final = "SLIPWAY_OIDC"
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID Connect provider of the settings. `required` are claims that everyone must have who may sign in:
    name and value.
    """

    name: str
    label: str
    issuer: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    username_claim: str = "preferred_username"
    reads_userinfo: bool = False
    # The claim that has what SCIM calls externalId.
    provisioned_claim: str = "sub"
    required: tuple[tuple[str, str], ...] = ()
    rules: tuple[Rule, ...] = ()
    # Who made the SCIM token of a request, by id; None: no such token is at work.
    scim_token_by: int | None = None

    def __repr__(self) -> str:
        """Represent the provider without its secret: settings appear in error reports."""
        return f"Provider({self.name!r}, {self.issuer!r})"


def read(names: Sequence[str]) -> tuple[Provider, ...]:
    """Raises BadEnvironment, which names the variable and the fix."""
    if len(set(names)) != len(names):
        raise env.BadEnvironment(f"{_VARIABLE} names a provider twice.")
    return tuple(_read_provider(name) for name in names)


def _read_provider(name: str) -> Provider:
    if not _NAME.fullmatch(name):
        raise env.BadEnvironment(
            f"{_VARIABLE}: “{name[:40]}” is not a name. Use lowercase letters, digits and '-'."
        )
    prefix = f"{_VARIABLE}_{name.upper().replace('-', '_')}"
    scopes = env.names(f"{prefix}_SCOPES", "openid,profile,email")
    if "openid" not in scopes:
        raise env.BadEnvironment(f"{prefix}_SCOPES must contain openid.")
    return Provider(
        name=name,
        label=env.text(f"{prefix}_LABEL", name.title()),
        issuer=_issuer(f"{prefix}_ISSUER"),
        client_id=_required(f"{prefix}_CLIENT_ID"),
        client_secret=env.secret(f"{prefix}_CLIENT_SECRET"),
        scopes=tuple(scopes),
        username_claim=env.text(f"{prefix}_USERNAME_CLAIM", "preferred_username"),
        reads_userinfo=env.flag(f"{prefix}_USERINFO", default=False),
        provisioned_claim=env.text(f"{prefix}_PROVISIONED_CLAIM", "sub"),
        required=_pairs(f"{prefix}_REQUIRED_CLAIMS"),
        rules=_rules(f"{prefix}_RULES"),
    )


def _required(name: str) -> str:
    value = env.text(name)
    if not value:
        raise env.BadEnvironment(f"{name} is empty. Set it to what the provider registered.")
    return value


def _issuer(name: str) -> str:
    issuer = _required(name)
    try:
        parts = urlsplit(issuer)
    except ValueError as error:
        raise env.BadEnvironment(f"{name} is not an address.") from error
    is_bare = not (parts.username or parts.password or parts.query or parts.fragment)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not (parts.hostname and is_bare and is_safe):
        raise env.BadEnvironment(
            f"{name} must be the provider's issuer, such as https://example.okta.com, without a query. "
            "http:// is for 127.0.0.1 only."
        )
    return issuer


def _pairs(name: str) -> tuple[tuple[str, str], ...]:
    pairs = [item.partition("=") for item in env.names(name)]
    if not all(claim and equals and value for claim, equals, value in pairs):
        raise env.BadEnvironment(f"{name} cannot be read. Write hd=example.com,tenant=ml.")
    return tuple((claim, value) for claim, _, value in pairs)


def _rules(name: str) -> tuple[Rule, ...]:
    try:
        return rules.parse(env.optional_secret(name).replace(";", "\n"))
    except rules.BadRule as error:
        raise env.BadEnvironment(f"{name}: {error}") from error
