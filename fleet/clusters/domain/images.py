"""Which container images pods may run: the platform's list, by repository and digest.

An entry is a repository (`nvcr.io/nvidia/tritonserver`), all below a path (`kserve/*`), a repository
whose images must be pinned by digest (`registry.example/part@sha256`), or one image
(`registry.example/part@sha256:…`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_ENTRIES: Final = 100
_DEFAULT_REGISTRY: Final = "docker.io"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})+(?::[0-9]{{1,5}})?|{_LABEL}:[0-9]{{1,5}}|localhost)"
_NAME: Final = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_PINNED: Final = "sha256"


@dataclass(frozen=True, slots=True)
class Image:
    """A container image. `repository` has its registry, written out: docker.io/kserve/storage-initializer."""

    repository: str
    tag: str = ""
    digest: str = ""


def parse(text: str) -> Image | None:
    """Parse the name of an image. None if no registry serves such a name, for example with ".." in its path."""
    rest, has_digest, digest = text.partition("@")
    last = rest.rpartition("/")[2]
    name, has_tag, tag = rest, "", ""
    if ":" in last:
        name, has_tag, tag = rest.rpartition(":")
    is_good = (
        _NAME.fullmatch(name)
        and (not has_tag or _TAG.fullmatch(tag))
        and (not has_digest or _DIGEST.fullmatch(digest))
    )
    return Image(_repository(name), tag, digest) if is_good and len(text) <= 300 else None


def entry_problem(entry: str) -> str:
    """Describe what is wrong with an entry; empty when it is one of the four forms."""
    name, has_digest, digest = entry.partition("@")
    if has_digest and not (digest == _PINNED or _DIGEST.fullmatch(digest)):
        return f"{entry}: after @, use sha256, or sha256: and 64 digits."
    is_below = name.endswith("/*")
    path = name.removesuffix("/*")
    is_host = is_below and "/" not in path and ("." in path or ":" in path)
    if not (_NAME.fullmatch(path) or (is_host and _NAME.fullmatch(f"{path}/x"))):
        return f"{entry}: use registry/name, or registry/path/* for everything below it, without a tag."
    return ""


def is_allowed(text: str, entries: Iterable[str]) -> bool:
    image = parse(text)
    return image is not None and any(_matches(image, entry) for entry in entries)


def _matches(image: Image, entry: str) -> bool:
    name, has_digest, digest = entry.partition("@")
    if has_digest and not image.digest:
        return False
    if digest not in ("", _PINNED) and digest != image.digest:
        return False
    if name.endswith("/*"):
        # With the slash, so that kserve/* is not kserve-evil/x.
        return image.repository.startswith(_folder(name.removesuffix("*")))
    return image.repository == _repository(name)


def _folder(path: str) -> str:
    first, _, rest = path.partition("/")
    return path if _is_registry(first) else f"{_DEFAULT_REGISTRY}/{first}/{rest}"


def _repository(name: str) -> str:
    first, slash, rest = name.partition("/")
    if slash and _is_registry(first):
        return f"{first.lower()}/{rest}"
    return f"{_DEFAULT_REGISTRY}/{name if slash else f'library/{name}'}"


def _is_registry(first: str) -> bool:
    """Distinguish a host from a path as container runtimes do."""
    return "." in first or ":" in first or first == "localhost"
