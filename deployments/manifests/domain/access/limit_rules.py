"""The rules of Envoy Gateway's local rate limits for the callers of one address: pure.

One policy holds few rules, and only one policy of a kind may name a route. Up to that number each caller has a
rule of its own; where there are more, those with the same limit share a rule that counts each of them by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# The same from Envoy Gateway 1.3 to 1.9.
MOST_RULES: Final = 16
_LONGEST_VALUE: Final = 1024
_UNSAFE: Final = re.compile(r"([^A-Za-z0-9_-])")


@dataclass(frozen=True, slots=True)
class ClientLimit:
    """The limit of one caller at the gateway. A paused caller gets nothing after the first request at each proxy."""

    requests_per_minute: int | None = None
    is_paused: bool = False

    @property
    def as_limit(self) -> dict[str, Any]:
        # Envoy takes no limit of 0.
        if self.is_paused or self.requests_per_minute is None:
            return {"requests": 1, "unit": "Day"}
        return {"requests": self.requests_per_minute, "unit": "Minute"}


@dataclass(frozen=True, slots=True)
class LimitRules:
    """The rules of a policy for limits. `left_out` are callers for whose limits the policy has no room, sorted."""

    rules: Sequence[dict[str, Any]]
    left_out: Sequence[str] = ()


def rules_of(
    by_client: Mapping[str, ClientLimit], *, header: str, are_numbered: bool
) -> LimitRules:
    """Return the rules for limits by the name of the caller. `are_numbered`: names end in a number that no
    other name has. Without room for all, pauses and low limits come first: the highest ones protect least.
    """
    if len(by_client) <= MOST_RULES:
        own = [_rule([_exact(header, name)], by_client[name]) for name in sorted(by_client)]
        return LimitRules(own)
    shared = list(_shared(by_client, are_numbered=are_numbered))
    left_out = [name for _, _, names in shared[MOST_RULES:] for name in names]
    rules = [
        _rule([_distinct(header), _matching(header, pattern)], limit)
        for limit, pattern, _ in shared[:MOST_RULES]
    ]
    return LimitRules(rules, sorted(left_out))


def rules_needed(
    by_client: Mapping[str, int | None], pausable: Collection[str], *, are_numbered: bool
) -> int:
    """Return the number of rules that are needed at most, whichever of `pausable` are paused. A caller that may
    be paused needs no limit of requests.
    """
    limited = {name for name, limit in by_client.items() if limit is not None} | set(pausable)
    if len(limited) <= MOST_RULES:
        return len(limited)
    unpaused = {name: ClientLimit(limit) for name, limit in by_client.items() if limit is not None}
    paused = dict.fromkeys(pausable, ClientLimit(is_paused=True))
    return sum(len(list(_shared(part, are_numbered=are_numbered))) for part in (unpaused, paused))


def _shared(
    by_client: Mapping[str, ClientLimit], *, are_numbered: bool
) -> Iterator[tuple[ClientLimit, str, Sequence[str]]]:
    """Yield each limit with a pattern of callers that have it, in the order in which they matter."""
    by_limit: dict[ClientLimit, list[str]] = {}
    for name, limit in sorted(by_client.items()):
        is_paused = limit.is_paused or limit.requests_per_minute is None
        key = ClientLimit(is_paused=True) if is_paused else limit
        by_limit.setdefault(key, []).append(name)
    for limit in sorted(by_limit, key=lambda limit: limit.requests_per_minute or 0):
        for names in _chunks(by_limit[limit], are_numbered=are_numbered):
            yield limit, _pattern(names, are_numbered=are_numbered), names


def _chunks(names: Sequence[str], *, are_numbered: bool) -> Iterator[Sequence[str]]:
    """Cut the names into as few chunks as possible, in order, so that fewer callers never need more rules."""
    chunk: list[str] = []
    for name in names:
        if chunk and len(_pattern([*chunk, name], are_numbered=are_numbered)) > _LONGEST_VALUE:
            yield chunk
            chunk = []
        chunk.append(name)
    if chunk:
        yield chunk


def _pattern(names: Sequence[str], *, are_numbered: bool) -> str:
    if are_numbered:
        numbers = "|".join(name.rpartition(".")[2] for name in names)
        return rf"[^.]+\.({numbers})"
    return "|".join(_UNSAFE.sub(r"\\\1", name) for name in names)


def _rule(headers: list[dict[str, str]], limit: ClientLimit) -> dict[str, Any]:
    return {"clientSelectors": [{"headers": headers}], "limit": limit.as_limit}


def _exact(header: str, client: str) -> dict[str, str]:
    return {"name": header, "type": "Exact", "value": client}


def _distinct(header: str) -> dict[str, str]:
    return {"name": header, "type": "Distinct"}


def _matching(header: str, pattern: str) -> dict[str, str]:
    return {"name": header, "type": "RegularExpression", "value": pattern}
