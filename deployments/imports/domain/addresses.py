"""The addresses that a model can be imported from, as people enter them.

s3://bucket/prefix/      https://host/path/model.onnx      models:/name/3, models:/name@alias
hf://organisation/model:commit
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from deployments.states import ImportKind
from portal.core.definitions import Rejected

FIELD: Final = "address"
MAX_LENGTH: Final = 4000
_MAX_SHOWN: Final = 1200
FORMS: Final = (
    "s3://bucket/prefix/, https://host/path/model.onnx, models:/name/3, models:/name@alias or "
    "hf://organisation/model:commit"
)
_S3: Final = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<key>.*))?", re.DOTALL
)
_MLFLOW: Final = re.compile(
    r"models:/(?P<name>[^/@]{1,200})(/(?P<number>[0-9]{1,9})|@(?P<alias>[^/@]{1,200}))"
)
_MLFLOW_PAGE: Final = re.compile(
    r"/?#/models/(?P<name>[^/]{1,600})/versions/(?P<number>[0-9]{1,9})"
)
_PART: Final = r"[A-Za-z0-9][-\w.]{0,95}"
_HUGGING_FACE: Final = re.compile(
    rf"hf://(?P<repository>({_PART}/)?{_PART})([:@](?P<revision>\w[-\w./]{{0,120}}))?", re.ASCII
)
_HUB_PAGE: Final = re.compile(
    rf"/(?P<repository>{_PART}/{_PART})(/(tree|commit)/(?P<revision>\w[-\w./]{{0,120}}))?/?",
    re.ASCII,
)
_URL: Final = re.compile(r"https?://[\x21-\x7e]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BucketAddress:
    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A version of a registered model: by number, or by an alias. `server` is empty if not named."""

    name: str
    number: str
    alias: str
    server: str = ""


@dataclass(frozen=True, slots=True)
class HubRepository:
    repository: str
    revision: str


@dataclass(frozen=True, slots=True)
class UrlAddress:
    url: str

    @property
    def filename(self) -> str:
        """The last part of the path."""
        return unquote(urlsplit(self.url).path).rstrip("/").rpartition("/")[2]


Place = BucketAddress | RegisteredModel | HubRepository | UrlAddress


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """The address of a model to import. `shown` has no credentials. `place` of a URL may have them in its query."""

    kind: ImportKind
    shown: str
    place: Place

    @property
    def name(self) -> str:
        """The name of the artifact until its files are known."""
        match self.place:
            case UrlAddress():
                return self.place.filename
            case BucketAddress():
                return self.place.key.rstrip("/").rpartition("/")[2] or self.place.bucket
            case RegisteredModel():
                return self.place.name
            case HubRepository():
                return self.place.repository.rpartition("/")[2]


def parse(
    text: str, *, hub_url: str = "", mlflow_servers: Mapping[str, str] | None = None
) -> SourceAddress:
    """Parse the address of a model. A page of the hub at `hub_url` names its repository, one of an MLflow
    server a version of a registered model. Raises Rejected.
    """
    text = text.strip()
    if not text:
        raise _rejected(f"Enter where the model is: {FORMS}.")
    if len(text) > MAX_LENGTH or not text.isprintable():
        raise _rejected(f"Enter one address of at most {MAX_LENGTH:,} printable characters.")
    if text.startswith("s3://"):
        return _bucket(text)
    if text.startswith("models:"):
        return _registered_model(text)
    if text.startswith("hf:"):
        return _repository(_HUGGING_FACE.fullmatch(text))
    if _URL.fullmatch(text):
        return _page(text, hub_url, mlflow_servers or {}) or _url(text)
    raise _rejected(f"This is not an address that can be imported. Enter {FORMS}.")


def redacted_url(url: str) -> str:
    """Reduce a URL to scheme, host, port and path: a query can be a credential."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path or '/'}"


def _bucket(text: str) -> SourceAddress:
    match = _S3.fullmatch(text)
    if match is None:
        raise _rejected("Enter a bucket and a prefix or key: s3://bucket/models/detector/.")
    return _address(ImportKind.S3, text, BucketAddress(match["bucket"], match["key"] or ""))


def _registered_model(text: str, server: str = "") -> SourceAddress:
    match = _MLFLOW.fullmatch(text)
    if match is None:
        raise _rejected(
            "Enter a version of a registered model: models:/name/3 or models:/name@alias."
        )
    place = RegisteredModel(match["name"], match["number"] or "", match["alias"] or "", server)
    return _address(ImportKind.MLFLOW, text, place)


def _repository(match: re.Match[str] | None) -> SourceAddress:
    if match is None or ".." in (match["revision"] or ""):
        raise _rejected("Enter a repository and its commit: hf://organisation/model:commit.")
    place = HubRepository(match["repository"], match["revision"] or "main")
    shown = f"hf://{place.repository}:{place.revision}"
    return _address(ImportKind.HUGGING_FACE, shown, place)


def _page(text: str, hub_url: str, mlflow_servers: Mapping[str, str]) -> SourceAddress | None:
    """Parse the address of a repository's page on the hub, or of the page of a registered model's version on an
    MLflow server. None if the text is neither.
    """
    on_hub = _path_on(text, hub_url)
    if on_hub and (page := _HUB_PAGE.fullmatch(on_hub)):
        return _repository(page)
    for server, address in mlflow_servers.items():
        if page := _MLFLOW_PAGE.fullmatch(text.removeprefix(address.rstrip("/"))):
            return _registered_model(f"models:/{unquote(page['name'])}/{page['number']}", server)
    return None


def _url(text: str) -> SourceAddress:
    try:
        parts = urlsplit(text)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        raise _rejected("Enter a complete address, for example https://models.example.org/a.onnx.")
    if parts.username or parts.password:
        raise _rejected("Remove user and password from the address. Use a pre-signed URL instead.")
    url = text.partition("#")[0]
    return _address(ImportKind.URL, redacted_url(url), UrlAddress(url))


def _path_on(text: str, hub_url: str) -> str:
    """Return the path below the hub's address. Empty elsewhere."""
    base = hub_url.rstrip("/")
    return text[len(base) :].partition("?")[0] if base and text.startswith(f"{base}/") else ""


def _address(kind: ImportKind, shown: str, place: Place) -> SourceAddress:
    if len(shown) > _MAX_SHOWN:
        raise _rejected(f"The address is longer than {_MAX_SHOWN:,} characters.")
    return SourceAddress(kind, shown, place)


def _rejected(message: str) -> Rejected:
    return Rejected(message, {FIELD: message})
