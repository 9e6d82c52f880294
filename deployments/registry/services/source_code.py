"""The code that a version brings, as text for the people who decide on its release. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deployments.models import ArtifactFile, ModelVersion
from deployments.registry.domain.not_servable import printable
from deployments.registry.gateways import object_store
from deployments.registry.selectors import versions
from deployments.registry.services import store_errors
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import NotFound

MOST_BYTES: Final = 256 * 2**10
_MOST_FILES: Final = 50
_SUFFIX: Final = ".py"


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file. `left_bytes` is the number of bytes after the end of `text`. Characters that cannot
    be shown are replaced.
    """

    path: str
    text: str
    left_bytes: int


def can_read(actor: User, version: ModelVersion) -> bool:
    """Return whether the user may read the code: people who may upload versions of the team, and the platform
    admins who decide on a release.
    """
    return policy.is_allowed(actor, Action.UPLOAD, version)


def paths(version: ModelVersion) -> Sequence[str]:
    """Return the first files of Python code, once they are stored."""
    rows = version.files.filter(path__endswith=_SUFFIX).exclude(s3_version_id="")
    return list(rows.order_by("path").values_list("path", flat=True)[:_MOST_FILES])


def read(*, actor: User, version_id: int, path: str) -> SourceText:
    """Return the beginning of a file, at the VersionId that was scanned. Raises NotFound and Unavailable."""
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    rows = version.files.select_related("version").exclude(s3_version_id="")
    file: ArtifactFile | None = rows.filter(path=path).first() if path.endswith(_SUFFIX) else None
    if file is None:
        raise NotFound(f"{version.label} has no code at {printable(path)[:100]}.")
    count = min(file.size_bytes, MOST_BYTES)
    with store_errors.translate_errors():
        store = object_store.store()
        body = store.read_range(file.key, file.s3_version_id, 0, count) if count else b""
    lines = body.decode(errors="replace").splitlines()
    text = "\n".join(printable(line.expandtabs(4)) for line in lines)
    return SourceText(path, text, file.size_bytes - count)
