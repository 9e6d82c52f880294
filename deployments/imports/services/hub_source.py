"""Import a repository of Hugging Face's hub, or of a mirror with its API, at one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings

from deployments.imports.domain import hub
from deployments.imports.domain.addresses import HubRepository, parse
from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import Listing, SourceFile
from deployments.imports.gateways.remote_files import RemoteFiles
from deployments.imports.services import streamed_files
from deployments.imports.services.progress import ImportProgress
from deployments.models import ArtifactFile, Import, ImportedFile
from deployments.registry.domain.artifacts import files as artifact_files

_README: Final = "README.md"
_MAX_README_BYTES: Final = 200_000


def require_available() -> None:
    if not settings.SLIPWAY_IMPORT_HUGGINGFACE:
        raise SourceRefused(
            "Imports from Hugging Face are switched off. A platform admin can set "
            "SLIPWAY_IMPORT_HUGGINGFACE."
        )


class HubSource:
    def __init__(self, place: HubRepository, *, commit: str) -> None:
        require_available()
        self._hub: str = settings.SLIPWAY_IMPORT_HUGGINGFACE.rstrip("/")
        self._place, self._commit = place, commit
        token = settings.SLIPWAY_IMPORT_HUGGINGFACE_TOKEN
        self._remote = RemoteFiles(
            private_hosts=settings.SLIPWAY_IMPORT_PRIVATE_HOSTS,
            origin=self._hub,
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )

    @classmethod
    def from_import(cls, job: Import) -> HubSource:
        place = parse(job.address).place
        if not isinstance(place, HubRepository):
            raise SourceRefused("The address does not name a repository.")
        return cls(place, commit=job.pin)

    def list_files(self, keep_alive: Callable[[], None]) -> Listing:
        repository = self._place.repository
        answer = self._json(hub.revision_url(self._hub, repository, self._place.revision))[0]
        self._commit = hub.commit_of(answer)
        files = self._tree(keep_alive)
        if not files:
            raise SourceRefused(f"{repository} has no files at commit {self._commit[:12]}.")
        page = f"{self._hub}/{repository}/tree/{self._commit}"
        return Listing(
            files,
            pin=self._commit,
            metadata=hub.metadata_of(answer, repository=repository, page=page),
            readme=self._readme(files),
        )

    def part_bytes(self, size_bytes: int) -> int:
        return streamed_files.part_bytes(size_bytes)

    def copy(self, file: ArtifactFile, origin: ImportedFile, progress: ImportProgress) -> None:
        url = hub.file_url(self._hub, self._place.repository, self._commit, origin.locator)
        streamed_files.copy(
            file, origin, lambda start: self._remote.open(url, start=start), progress
        )

    def close(self) -> None:
        self._remote.close()

    def _tree(self, keep_alive: Callable[[], None]) -> list[SourceFile]:
        url = hub.tree_url(self._hub, self._place.repository, self._commit)
        files: list[SourceFile] = []
        while url and len(files) <= artifact_files.MAX_FILES:
            keep_alive()
            answer, headers = self._json(url)
            files += hub.files_of(answer)
            url = hub.next_page(headers.get("link", ""))
        return files

    def _readme(self, files: list[SourceFile]) -> str:
        """Return the model card, if the repository has one of reasonable size."""
        if not any(f.path == _README and f.size_bytes <= _MAX_README_BYTES for f in files):
            return ""
        url = hub.file_url(self._hub, self._place.repository, self._commit, _README)
        text = self._remote.get_bytes(url).decode(errors="replace").replace("\x00", "")
        return text.replace("\r\n", "\n").strip()[:100_000]

    def _json(self, url: str) -> tuple[Any, Mapping[str, str]]:
        try:
            return self._remote.get_json(url)
        except SourceRefused as error:
            if error.status not in (401, 403, 404):
                raise
            raise SourceRefused(
                f"{self._place.repository} at {self._place.revision} is gated, private or does not "
                "exist. Check the name and the revision. For a gated repository, accept its terms with "
                "the account whose token a platform admin sets as SLIPWAY_IMPORT_HUGGINGFACE_TOKEN."
            ) from error
