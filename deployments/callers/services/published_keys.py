"""Whether the keys of token issuers are published where gateways read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from deployments.callers.gateways import published_keys
from deployments.callers.selectors import token_issuers


@dataclass(frozen=True, slots=True)
class Published:
    """`problem` is empty where `keys` were read."""

    issuer: str
    url: str
    keys: int = 0
    problem: str = ""

    @property
    def is_inside_a_cluster(self) -> bool:
        """The portal may have no way there, and the proxies have."""
        host = urlsplit(self.url).hostname or ""
        return host.endswith((".svc", ".svc.cluster.local"))


def check_all() -> Iterator[Published]:
    """By name of the issuer."""
    for row in token_issuers.registered():
        try:
            keys = published_keys.read(row.jwks_url)
        except published_keys.NotPublished as error:
            yield Published(row.name, row.jwks_url, problem=str(error))
        else:
            yield Published(row.name, row.jwks_url, len(keys))
