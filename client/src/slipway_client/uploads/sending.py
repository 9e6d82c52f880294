"""Send parts of many files at once, with a bound on what is in flight.

The calling thread talks to the portal: it signs. A pool of threads reads, digests and sends. What
is in hand is bounded, so that URLs do not expire before their turn: two parts for each thread, or
more of small files, which are signed together.
"""

from __future__ import annotations

import base64
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, Final

from slipway_client.types import PartUrl
from slipway_client.uploads import local_files
from slipway_client.uploads.local_files import LocalFile
from slipway_client.uploads.part_store import Part, PartStore, Stopped, UploadGone, UrlRefused

_MOST_SIGNATURES: Final = 5
_MOST_IN_HAND: Final = 40
_MOST_BYTES_IN_HAND: Final = 64 * 2**20
# More than are in hand of large parts: those are signed when all of them are digested.
_ENOUGH_TO_SIGN: Final = 20

Sign = Callable[[Sequence[Part]], Sequence[PartUrl]]


@dataclass(frozen=True, slots=True)
class Missing:
    """Parts of a file that the store lacks."""

    file: LocalFile
    part_size: int
    numbers: Sequence[int]
    is_assembled: bool = False

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts())

    def parts(self) -> Iterator[Part]:
        for number in self.numbers:
            start = (number - 1) * self.part_size
            yield Part(self.file, number, start, min(self.part_size, self.file.size_bytes - start))


@dataclass
class Sender:
    """One use: `run` sends everything that is missing."""

    store: PartStore
    sign: Sign
    on_file: Callable[[str], None]
    parallel: int
    _digesting: dict[Future[str], Part] = field(default_factory=dict)
    _digested: list[Part] = field(default_factory=list)
    _sending: dict[Future[None], Part] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)
    _signatures: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _gone: set[str] = field(default_factory=set)

    def run(self, missing: Sequence[Missing]) -> None:
        """Send all parts, and call `on_file` with the path of each file that is sent as a whole. A file whose
        upload was dropped by the store is left out; the next round finds all its parts missing.
        """
        self._left = {item.file.path: len(item.numbers) for item in missing}
        parts = (part for item in missing for part in item.parts())
        pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="slipway-upload")
        try:
            while self._fill(pool, parts):
                in_hand: list[Future[Any]] = [*self._digesting, *self._sending]
                done, _ = wait(in_hand, return_when=FIRST_COMPLETED)
                self._handle_sent(pool, [future for future in done if future in self._sending])
                self._handle_digested([item for item in done if item in self._digesting])
                self._sign_digested(pool)
        finally:
            # Nothing is in hand after the last part; after an error or Ctrl-C threads end soon.
            self.store.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _fill(self, pool: ThreadPoolExecutor, parts: Iterator[Part]) -> bool:
        """Whether anything is in hand."""
        while self._has_room():
            part = next(parts, None)
            if part is None:
                break
            if part.file.path not in self._gone:
                self._digesting[pool.submit(_checksum, part)] = part
        return bool(self._digesting or self._sending)

    def _has_room(self) -> bool:
        in_hand = [*self._digesting.values(), *self._digested, *self._sending.values()]
        if len(in_hand) < 2 * self.parallel:
            return True
        size_bytes = sum(part.size_bytes for part in in_hand)
        return len(in_hand) < _MOST_IN_HAND and size_bytes < _MOST_BYTES_IN_HAND

    def _handle_digested(self, done: Sequence[Future[str]]) -> None:
        for future in done:
            part = replace(self._digesting.pop(future), checksum=future.result())
            self._digested.append(part)

    def _sign_digested(self, pool: ThreadPoolExecutor) -> None:
        """Sign what is digested with one request, once threads have less to send than they could."""
        is_enough = len(self._digested) >= _ENOUGH_TO_SIGN or not self._digesting
        if self._digested and is_enough and len(self._sending) < self.parallel:
            parts, self._digested = self._digested, []
            self._submit(pool, parts)

    def _submit(self, pool: ThreadPoolExecutor, parts: Sequence[Part]) -> None:
        by_place = {(part.file.path, part.number): part for part in parts}
        for signed in self.sign(parts):
            place = signed.path, signed.number
            self._signatures[place] += 1
            headers = {str(name): str(value) for name, value in signed.headers.items()}
            part = by_place[place]
            self._sending[pool.submit(self.store.put, part, signed.url, headers)] = part

    def _handle_sent(self, pool: ThreadPoolExecutor, done: Sequence[Future[None]]) -> None:
        for future in done:
            part = self._sending.pop(future)
            path = part.file.path
            try:
                future.result()
            except UrlRefused:
                if self._signatures[path, part.number] >= _MOST_SIGNATURES:
                    raise
                self._submit(pool, [part])
            except UploadGone:
                self._gone.add(path)
            else:
                self._left[path] -= 1
                if self._left[path] == 0:
                    self.on_file(path)


def _checksum(part: Part) -> str:
    digest = local_files.sha256(part.file, lambda _: None, part.start, part.size_bytes)
    return base64.b64encode(digest.digest()).decode()


def digest_all(
    files: Sequence[LocalFile], on_bytes: Callable[[int], None], parallel: int
) -> dict[str, str]:
    """Return the SHA-256 of each file by its path."""
    stop = threading.Event()

    def count(size: int) -> None:
        if stop.is_set():
            raise Stopped
        on_bytes(size)

    pool = ThreadPoolExecutor(parallel, thread_name_prefix="slipway-digest")
    try:
        digests = pool.map(lambda file: local_files.sha256(file, count).hexdigest(), files)
        return {file.path: digest for file, digest in zip(files, digests, strict=True)}
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
