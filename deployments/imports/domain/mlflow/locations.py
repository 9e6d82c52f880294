"""The locations of a model version's files, as MLflow names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from deployments.imports.domain.addresses import BucketAddress
from deployments.imports.domain.errors import SourceRefused

PROXY: Final = "/api/2.0/mlflow-artifacts/artifacts"


@dataclass(frozen=True, slots=True)
class ProxiedFolder:
    """A folder below the root that the tracking server hands out by itself."""

    path: str


def parse(uri: str, *, server: str) -> ProxiedFolder | BucketAddress:
    """Parse the location of a model version's files. `server` is the address of the tracking server. Raises
    SourceRefused: a model version can name any place, and only that server and buckets are read.
    """
    parts = urlsplit(uri)
    if parts.scheme == "s3" and parts.netloc:
        return BucketAddress(parts.netloc, parts.path.strip("/"))
    if parts.scheme in ("http", "https") and uri.startswith(f"{server}{PROXY}/"):
        return _folder(unquote(parts.path.partition(f"{PROXY}/")[2]))
    if parts.scheme == "mlflow-artifacts" and parts.netloc in ("", urlsplit(server).netloc):
        return _folder(unquote(parts.path))
    raise SourceRefused(
        f"The files of this version are at {parts.scheme or 'a path'}:…, which the portal does not read. "
        "MLflow has to serve them itself (mlflow server --serve-artifacts, with mlflow-artifacts:/ as its "
        "artifact root), or keep them in S3."
    )


def folder_url(server: str, path: str) -> str:
    return f"{server}{PROXY}?path={quote(path, safe='')}"


def file_url(server: str, path: str) -> str:
    return f"{server}{PROXY}/{quote(path)}"


def _folder(path: str) -> ProxiedFolder:
    path = path.strip("/")
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        raise SourceRefused("MLflow names a folder that is not below its root of artifacts.")
    return ProxiedFolder(path)
