"""The real store, with a worker's death before or after one of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from deployments.registry.gateways.object_store import S3Store

CALLS = frozenset(
    {
        "create_upload",
        "list_parts",
        "complete_upload",
        "abort_upload",
        "abort_uploads",
        "head",
        "read",
        "read_range",
        "put",
        "put_part",
        "copy",
        "list_keys",
        "list_newest",
        "lock",
        "delete_all_versions",
    }
)


class Death(BaseException):
    """The process is gone: nothing catches it."""


class CrashingStore:
    def __init__(self, store: S3Store, *, at_call: int, is_after: bool) -> None:
        self._store = store
        self._at_call = at_call
        self._is_after = is_after
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        return self._watched(name, value) if name in CALLS else value

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            is_the_one = len(self.calls) == self._at_call
            if is_the_one and not self._is_after:
                raise Death(name)
            result = call(*args, **kwargs)
            if is_the_one:
                if isinstance(result, Iterator):
                    list(result)
                raise Death(name)
            return result

        return run


def worth_dying_at(calls: list[str]) -> list[int]:
    """The numbers of the calls: all but those inside a row of the same read, which change nothing."""
    return [
        number
        for number, call in enumerate(calls, 1)
        if not call.startswith("read")
        or calls[number - 2 : number - 1] != [call]
        or calls[number : number + 1] != [call]
    ]
