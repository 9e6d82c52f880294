"""The API of Hugging Face's hub: addresses, and what its answers say.

GET /api/models/{repository}/revision/{revision}    the commit, the licence and tags
GET /api/models/{repository}/tree/{commit}?recursive=true    pages of files, the next in Link
GET /{repository}/resolve/{commit}/{path}    the bytes, often by a redirect
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from deployments.imports.domain.errors import SourceRefused
from deployments.imports.domain.listing import SourceFile

# Settings of Git, not of the model.
_SKIPPED: Final = frozenset({".gitattributes", ".gitignore"})
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_NEXT: Final = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?')


def revision_url(hub: str, repository: str, revision: str) -> str:
    return f"{hub}/api/models/{repository}/revision/{quote(revision, safe='')}"


def tree_url(hub: str, repository: str, commit: str) -> str:
    return f"{hub}/api/models/{repository}/tree/{commit}?recursive=true&expand=false"


def file_url(hub: str, repository: str, commit: str, path: str) -> str:
    return f"{hub}/{repository}/resolve/{commit}/{quote(path)}"


def next_page(link: str) -> str:
    """Return the address of the next page in a Link header. Empty on the last."""
    match = _NEXT.search(link)
    return match[1] if match else ""


def commit_of(answer: Any) -> str:
    commit = answer.get("sha") if isinstance(answer, Mapping) else None
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise SourceRefused("The hub did not say which commit the revision is.")
    return commit


def files_of(answer: Any) -> list[SourceFile]:
    """Return the files of one page of the tree. Of large files the hub names the SHA-256."""
    if not isinstance(answer, Sequence) or isinstance(answer, str):
        raise SourceRefused("The hub did not answer with a list of files.")
    return [
        _file(row)
        for row in answer
        if isinstance(row, Mapping)
        and row.get("type") == "file"
        and str(row.get("path", "")).rpartition("/")[2] not in _SKIPPED
    ]


def metadata_of(answer: Mapping[str, Any], *, repository: str, page: str) -> dict[str, Any]:
    """Return the licence, library and address of the repository."""
    card = answer.get("cardData")
    licence = card.get("license") if isinstance(card, Mapping) else None
    labels = {"huggingface": repository, "pipeline": answer.get("pipeline_tag")}
    texts = {"licence": licence, "framework": answer.get("library_name"), "run_url": page}
    named = {key: text for key, text in texts.items() if isinstance(text, str)}
    return named | {"labels": {key: text for key, text in labels.items() if isinstance(text, str)}}


def _file(row: Mapping[str, Any]) -> SourceFile:
    large = row.get("lfs")
    large = large if isinstance(large, Mapping) else {}
    path, size = row.get("path"), large.get("size", row.get("size"))
    if not isinstance(path, str) or not isinstance(size, int) or isinstance(size, bool):
        raise SourceRefused("The hub's list has a file without path or size.")
    digest = large.get("oid") or large.get("sha256") or ""
    is_digest = isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)
    return SourceFile(path, size, locator=path, sha256=digest if is_digest else "")
