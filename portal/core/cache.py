"""Django's cache on Valkey or Redis, and the commands for counters that Django's cache lacks.

Each function asks through the breaker: it raises NotAsked, or a RedisError, where the server does not answer.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import cache
from redis import Redis
from redis.exceptions import RedisError

from portal.breaker import valkey

T = TypeVar("T")

# A part of each key of `recent`; each test has one of its own.
_epoch = ""


def recent(key: tuple[object, ...], make: Callable[[], T], *, seconds: int) -> T:
    """Return the cached value of `key`, of whichever process, or call `make` and cache its result for `seconds`.

    The key says what the value is of, who may see it, and which form it has. Without the cache it is made each
    time.
    """
    name = f"recent-{hashlib.sha256(repr((_epoch, key)).encode()).hexdigest()}"
    with contextlib.suppress(RedisError, OSError):
        kept: T | None = get(name)
        if kept is not None:
            return kept
    made = make()
    with contextlib.suppress(RedisError, OSError):
        put(name, made, seconds=seconds)
    return made


def get(key: str) -> Any:
    """Return the value, or None if it is not in the cache."""
    return valkey.ask(partial(cache.get, key))


def put(key: str, value: object, *, seconds: float) -> None:
    valkey.ask(partial(cache.set, key, value, seconds))


def count(key: str, *, seconds: int) -> int:
    """Add 1 to the counter and return it. It is deleted `seconds` after its first count."""
    client = _client()
    number = int(client.incr(key))
    if number == 1:
        client.expire(key, seconds)
    return number


def undo_count(key: str) -> None:
    client = _client()
    if client.exists(key):
        client.decr(key)


def delete_counter(key: str) -> None:
    _client().delete(key)


def increase_field(key: str, field: str) -> None:
    """Add 1 to one of the counters that are kept together under the key."""
    _client().hincrby(key, field, 1)


def read_fields(key: str) -> dict[str, int]:
    return {field.decode(): int(number) for field, number in _client().hgetall(key).items()}


def count_entries(key: str) -> int:
    """Count the entries of a list, such as the messages of a queue."""
    return int(_client().llen(key))


class _Guarded(Redis):
    def execute_command(self, *args: Any, **options: Any) -> Any:
        return valkey.ask(partial(super().execute_command, *args, **options))


def _client() -> Any:
    chosen: Any = settings.CACHES["default"]
    return _client_of(chosen["LOCATION"], tuple(chosen.get("OPTIONS", {}).items()))


@lru_cache(maxsize=4)
def _client_of(url: str, options: tuple[tuple[str, Any], ...]) -> Redis:
    """All threads share it: it has a pool of connections."""
    return _Guarded.from_url(url, **dict(options))
