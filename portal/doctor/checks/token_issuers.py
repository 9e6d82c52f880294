"""Identity providers whose tokens gateways accept: whether their keys are published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deployments.callers.services import published_keys
from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check

_FIX: Final = (
    "Check the issuer's JWKS URL under Admin > Token issuers, and open the network path to it: the gateway's proxies read "
    "it every five minutes, and refuse callers with 401 while they have no keys."
)


@check("clusters", "Token issuers", fix="Fix the database first.")
def keys_of_token_issuers() -> Iterator[Line]:
    """Check the keys of token issuers from the portal. How the proxies reach them depends on the platform's network."""
    for one in published_keys.check_all():
        name = f"Keys of {one.issuer}"
        if not one.problem:
            yield ok(
                name, f"{one.url} publishes {one.keys}; the gateway's proxies must reach it too"
            )
        elif one.is_inside_a_cluster:
            yield note(
                name, f"{one.url}: {one.problem}. It may be reached from its cluster only", _FIX
            )
        else:
            yield report_failed(name, f"{one.url}: {one.problem}", _FIX)
