"""The upload of a path as a version: digest, find, send what is missing, complete, verify.

Nothing is stored on this machine. An interrupted upload is recognised by its files: an open upload of the same
person and model with the same paths, sizes and digests is continued, also from another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from slipway_client.connection import Connection, RetryPolicy
from slipway_client.decoding import decode
from slipway_client.errors import ApiError, Conflict, Failed, NotFound
from slipway_client.types import ArtifactFile, ListedVersion, Parts, PartUrl, StartedUpload, Version
from slipway_client.uploads import git_lfs, local_files, sending
from slipway_client.uploads.local_files import LocalFile
from slipway_client.uploads.part_store import Part, PartStore
from slipway_client.uploads.progress import Progress, Silent
from slipway_client.uploads.sending import Missing, Sender

# About five minutes: a laptop that wakes up takes a while to find its network.
PATIENT: Final = RetryPolicy(attempts=14, first_pause_seconds=0.5, longest_pause_seconds=30.0)
_ROUNDS: Final = 4
_MOST_AT_ONCE: Final = 100
_HEAD_BYTES: Final = 4_096
_MOST_HEADS: Final = 100
_NEWEST: Final = 200
_TO_SEND_AGAIN: Final = frozenset({"parts_missing", "parts_refused"})


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """The options of an upload. `fields` are further fields of the request, as the API documents them: metadata,
    declared, …
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    is_duplicate_allowed: bool = False
    parallel: int = 4
    retry: RetryPolicy = PATIENT
    transport: httpx.BaseTransport | None = None


class Push:
    """One upload of `path` to the model team/model. `run` returns the version, which is verifying."""

    def __init__(
        self,
        connection: Connection,
        path: Path,
        model: str,
        options: UploadOptions,
        progress: Progress | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._model = model
        self._options = options
        self._progress = progress or Silent()
        self._finished: list[str] = []

    def run(self) -> int:
        """Push the files and return the version's id: a new one, or one with exactly these files."""
        files = local_files.collect(self._path)
        git_lfs.refuse_pointers(files)
        self._progress.begin("digest", sum(file.size_bytes for file in files))
        digests = sending.digest_all(
            files, lambda count: self._progress.advance("digest", count), self._options.parallel
        )
        upload = self._find_open(files, digests)
        if upload is None:
            try:
                upload = self._start(files, digests)
            except Conflict as error:
                if error.code != "same_bytes":
                    raise
                return self._same_version(digests, error)
        by_path = {file.path: file for file in files}
        self._send_and_complete(upload, by_path)
        return upload.id

    def _find_open(
        self, files: Sequence[LocalFile], digests: Mapping[str, str]
    ) -> StartedUpload | None:
        """Find an open upload of the token's owner with exactly these files."""
        expected = {file.path: (file.size_bytes, digests[file.path]) for file in files}
        total = sum(file.size_bytes for file in files)
        for version in self._own_open_versions():
            if version.declared_size_bytes != total:
                continue
            rows = self._connection.get(f"versions/{version.id}/files")
            listed = [decode(ArtifactFile, row) for row in rows]
            if {file.path: (file.size_bytes, file.sha256) for file in listed} == expected:
                self._progress.note(f"Resuming {version}.")
                raw = self._connection.get(f"versions/{version.id}")
                return decode(StartedUpload, {**raw, "files": rows})
        return None

    def _own_open_versions(self) -> list[ListedVersion]:
        try:
            # The newest: an open upload that is not continued expires after a day.
            newest = {"limit": _NEWEST}
            rows = self._connection.get(f"models/{self._model}/versions", newest)["results"]
        except NotFound:
            return []
        me = self._connection.get("me")["username"]
        listed = [decode(ListedVersion, row) for row in rows]
        return [row for row in listed if row.state == "uploading" and row.created_by == me]

    def _start(self, files: Sequence[LocalFile], digests: Mapping[str, str]) -> StartedUpload:
        has_heads = len(files) <= _MOST_HEADS
        listed = [
            {
                "path": file.path,
                "size_bytes": file.size_bytes,
                "sha256": digests[file.path],
                "head": file.head(_HEAD_BYTES) if has_heads else "",
            }
            for file in files
        ]
        body = {
            **self._options.fields,
            "files": listed,
            "part_checksums": True,
            "allow_duplicate": self._options.is_duplicate_allowed,
        }
        answer = self._connection.post(f"models/{self._model}/versions", body)
        return decode(StartedUpload, answer)

    def _same_version(self, digests: Mapping[str, str], error: Conflict) -> int:
        """Return the version that has these files already. Nothing is sent."""
        sha256 = local_files.identity(digests)
        for row in self._connection.pages("versions", {"sha256": sha256}):
            version = decode(ListedVersion, row)
            is_same_model = f"{version.team}/{version.model}" == self._model
            if is_same_model and version.state != "failed":
                self._progress.note(
                    f"These exact files are {version} ({version.state}). Nothing was sent."
                )
                return version.id
        raise error

    def _send_and_complete(self, upload: StartedUpload, by_path: Mapping[str, LocalFile]) -> None:
        """Send what the store lacks in rounds; one is enough unless the store lost parts."""
        states = {file.path: file for file in upload.files}
        for _ in range(_ROUNDS):
            missing = [
                self._missing(upload.id, states[path], file) for path, file in by_path.items()
            ]
            if self._guarded(upload.id, partial(self._send_round, upload.id, missing)):
                return
            rows = self._connection.get(f"versions/{upload.id}/files")
            states = {row["path"]: decode(ArtifactFile, row) for row in rows}
        raise Failed(f"The object store keeps losing parts of {upload}. Push again to resume.")

    def _send_round(self, version_id: int, missing: Sequence[Missing]) -> bool:
        """Whether the upload is complete. False: the store lacks parts that were sent."""
        total = sum(item.file.size_bytes for item in missing)
        left = [item for item in missing if item.numbers]
        self._progress.begin("send", total)
        self._progress.advance("send", total - sum(item.size_bytes for item in left))
        self._finished = [
            item.file.path for item in missing if not item.numbers and not item.is_assembled
        ]
        try:
            self._send(version_id, left)
            self._complete(version_id)
        except Conflict as error:
            if error.code in _TO_SEND_AGAIN:
                return False
            raise
        return True

    def _missing(self, version_id: int, state: ArtifactFile, file: LocalFile) -> Missing:
        """Return the parts of the file that the store lacks. Sends one request, and only for a file that was begun."""
        if state.state in ("stored", "verified"):
            return Missing(file, state.part_size, (), is_assembled=True)
        if state.state == "waiting":
            return Missing(file, state.part_size, range(1, state.part_count + 1))
        answer = self._connection.get(f"versions/{version_id}/parts", {"path": file.path})
        parts = decode(Parts, answer)
        return Missing(file, parts.part_size, parts.missing)

    def _send(self, version_id: int, missing: Sequence[Missing]) -> None:
        store = PartStore(
            self._options.retry,
            lambda count: self._progress.advance("send", count),
            self._options.transport,
        )
        sender = Sender(
            store,
            lambda parts: self._sign(version_id, parts),
            lambda path: self._file_sent(version_id, path),
            self._options.parallel,
        )
        try:
            sender.run(missing)
        finally:
            store.close()

    def _sign(self, version_id: int, parts: Sequence[Part]) -> list[PartUrl]:
        by_path: dict[str, dict[int, str]] = {}
        for part in parts:
            by_path.setdefault(part.file.path, {})[part.number] = part.checksum
        files = [
            {
                "path": path,
                "numbers": sorted(checksums),
                "checksums": {str(number): checksum for number, checksum in checksums.items()},
            }
            for path, checksums in by_path.items()
        ]
        rows = self._connection.post(f"versions/{version_id}/parts", {"files": files})
        return [decode(PartUrl, row) for row in rows]

    def _file_sent(self, version_id: int, path: str) -> None:
        """Assemble in batches on the way, so that the last request has little left to do."""
        self._finished.append(path)
        if len(self._finished) >= _MOST_AT_ONCE:
            self._complete_files(version_id)

    def _complete(self, version_id: int) -> None:
        if len(self._finished) > 1:
            self._complete_files(version_id)
        self._post_until_assembled(f"versions/{version_id}/complete")

    def _complete_files(self, version_id: int) -> None:
        paths, self._finished = self._finished, []
        for start in range(0, len(paths), _MOST_AT_ONCE):
            body = {"paths": paths[start : start + _MOST_AT_ONCE]}
            self._post_until_assembled(f"versions/{version_id}/files/complete", body)

    def _post_until_assembled(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        """The object store may join the parts of a large file for longer than one request is repeated."""
        while True:
            try:
                self._connection.post(path, body)
            except ApiError as error:
                if error.code != "assembling":
                    raise
            else:
                return

    def _guarded(self, version_id: int, work: Callable[[], bool]) -> bool:
        """Say how an upload ended if it has ended meanwhile, instead of "wrong state"."""
        try:
            return work()
        except (Conflict, NotFound) as error:
            version = decode(Version, self._connection.get(f"versions/{version_id}"))
            if version.state == "uploading":
                raise
            reason = version.state_reason or "The upload has ended."
            raise Failed(f"{version} is {version.state}: {reason} Push again.") from error
