"""Whether the keys of token issuers are published where gateways read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from deployments.callers.gateways import published_keys
from deployments.callers.selectors import token_issuers


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a check of an issuer's keys. `problem` is empty if `keys` were read."""

    issuer: str
    url: str
    keys: int = 0
    problem: str = ""

    @property
    def is_inside_a_cluster(self) -> bool:
        """Whether the address is inside a cluster, where the proxies reach it although the portal may not."""
        host = urlsplit(self.url).hostname or ""
        return host.endswith((".svc", ".svc.cluster.local"))


def check_all() -> Iterator[Published]:
    """Check the published keys of each registered issuer, in order of name."""
    for row in token_issuers.list_registered():
        try:
            keys = published_keys.read(row.jwks_url)
        except published_keys.NotPublished as error:
            yield Published(row.name, row.jwks_url, problem=str(error))
        else:
            yield Published(row.name, row.jwks_url, len(keys))
