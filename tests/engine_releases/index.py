"""Fetch the sources of releases from the package index that pip is configured for."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from portal.management import install

_DEFAULT_INDEX: Final = "https://pypi.org/simple"
_JSON: Final = "application/vnd.pypi.simple.v1+json"
_SECONDS: Final = 180.0
_FINAL: Final = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The archive of a release's sources. `sha256` is as the index states it."""

    release: str
    name: str
    url: str
    sha256: str


def list_sources(package: str) -> dict[str, SourceFile]:
    """Return the final releases that have an archive of sources, the newest last."""
    index = install.uv_environment(Path(sys.executable)).get("UV_DEFAULT_INDEX") or _DEFAULT_INDEX
    url = f"{index.rstrip('/')}/{package}/"
    answer = httpx.get(url, headers={"Accept": _JSON}, timeout=_SECONDS, follow_redirects=True)
    answer.raise_for_status()
    found = {}
    for file in answer.json()["files"]:
        release = file["filename"].removeprefix(f"{package}-").removesuffix(".tar.gz")
        if _FINAL.fullmatch(release) and not file.get("yanked"):
            address = str(httpx.URL(url).join(file["url"]))
            found[release] = SourceFile(
                release, file["filename"], address, file["hashes"]["sha256"]
            )
    return {release: found[release] for release in sorted(found, key=order)}


def order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def read_sources(file: SourceFile, is_read: Callable[[str], bool]) -> dict[str, str]:
    """Return the texts of the files that `is_read` chooses by their path in the release. Exits if the archive is not
    the one that the index states.
    """
    content = (
        httpx.get(file.url, timeout=_SECONDS, follow_redirects=True).raise_for_status().content
    )
    if hashlib.sha256(content).hexdigest() != file.sha256:
        sys.exit(f"{file.name} has another SHA-256 than the index states.")
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isfile() and is_read(path):
                opened = archive.extractfile(member)
                texts[path] = opened.read().decode() if opened else ""
    return texts
