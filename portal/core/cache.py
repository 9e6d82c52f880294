"""The cache: Django's on Valkey or Redis, with one client for each thread instead of one for each command."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis
from redis.exceptions import RedisError

from portal.breaker import valkey

T = TypeVar("T")

# A part of each key of `recent`; each test has one of its own.
_epoch = ""


def recent(key: tuple[object, ...], make: Callable[[], T], *, seconds: int) -> T:
    """What `make` returned for the key in the last seconds, in whichever process; else what it returns now.

    The key says what it is of, who may see it, and which form the value has. Without the cache it is made each time.
    """
    name = f"recent-{hashlib.sha256(repr((_epoch, key)).encode()).hexdigest()}"
    with contextlib.suppress(RedisError, OSError):
        kept: T | None = cache.get(name)
        if kept is not None:
            return kept
    made = make()
    with contextlib.suppress(RedisError, OSError):
        cache.set(name, made, seconds)
    return made


class _Guarded(Redis):
    """Sends no command while the server is known not to answer."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        return valkey.ask(partial(super().execute_command, *args, **options))


class _Client(RedisCacheClient):
    _kept: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._client = _Guarded

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        """Making a client costs ten times a command. There is one server to read and to write."""
        if self._kept is None:
            self._kept = super().get_client(key, write=True)
        return self._kept


class Cache(RedisCache):
    def __init__(self, server: str | list[str], params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client

    def count(self, key: str, *, seconds: int) -> int:
        """How often it was called for the key since its first call, which is forgotten after `seconds`."""
        name = self.make_and_validate_key(key)
        client = self._cache.get_client(name, write=True)
        number = int(client.incr(name))
        if number == 1:
            client.expire(name, seconds)
        return number

    def increase_field(self, key: str, field: str) -> None:
        """Add 1 to one of the counters that are kept together under the key."""
        name = self.make_and_validate_key(key)
        self._cache.get_client(name, write=True).hincrby(name, field, 1)

    def read_fields(self, key: str) -> dict[str, int]:
        name = self.make_and_validate_key(key)
        fields: Any = self._cache.get_client(name).hgetall(name)
        return {field.decode(): int(count) for field, count in fields.items()}
