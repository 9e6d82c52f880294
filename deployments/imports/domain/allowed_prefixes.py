"""The buckets and prefixes that may be imported from: "s3://models/{team}/" for each team its own."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.imports.domain.addresses import BucketAddress


def is_allowed(patterns: Sequence[str], address: BucketAddress, *, team: str) -> bool:
    """Whether the address is, or lies under, an allowed prefix. "s3://b/a" does not allow "s3://b/ab"."""
    uri = f"s3://{address.bucket}/{address.key}"
    prefixes = (pattern.replace("{team}", team).rstrip("/") + "/" for pattern in patterns)
    return any(uri.startswith(prefix) or f"{uri}/" == prefix for prefix in prefixes)


def describe(patterns: Sequence[str], *, team: str) -> str:
    return ", ".join(pattern.replace("{team}", team) for pattern in patterns)
