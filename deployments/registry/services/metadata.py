"""Edit the metadata and the README of a version. Facts about its bytes never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from deployments.models import Model, ModelVersion
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.selectors import versions
from deployments.registry.services import search_index
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

DESCRIBED = register("version.described", "edited the metadata of")
MAX_README_LENGTH: Final = 100_000


def describe(
    *,
    actor: User,
    version_id: int,
    metadata: Mapping[str, Any] | None = None,
    readme: str | None = None,
) -> ModelVersion:
    """Replace the metadata and the README, with an audit record. None keeps what is there."""
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    cleaned = dict(version.metadata)
    problems: dict[str, str] = {}
    if metadata is not None:
        cleaned, problems = version_metadata.clean(metadata, is_reference=bool(version.source_uri))
    text = version.readme if readme is None else readme.replace("\r\n", "\n").strip()
    problems |= readme_problems(text)
    if problems:
        raise Invalid(" ".join(problems.values()), fields=problems)
    if (cleaned, text) == (version.metadata, version.readme):
        return version
    _write(actor, version, cleaned, text)
    return version


def readme_problems(readme: str) -> dict[str, str]:
    if len(readme) > MAX_README_LENGTH:
        return {"readme": f"The README can have at most {MAX_README_LENGTH:,} characters."}
    if "\x00" in readme:
        return {"readme": "Remove the NUL character."}
    return {}


def _write(actor: User, version: ModelVersion, metadata: dict[str, Any], readme: str) -> None:
    before, after = dict(version.metadata), dict(metadata)
    if readme != version.readme:
        before["readme"], after["readme"] = version.readme, readme
    version.metadata, version.readme = metadata, readme
    with transaction.atomic():
        ModelVersion.objects.filter(pk=version.pk).update(metadata=metadata, readme=readme)
        search_index.write(version)
        Model.objects.filter(pk=version.model_id).update(changed_at=clock.now())
        trail.record(
            actor=actor,
            action=DESCRIBED,
            obj=version,
            label=version.label,
            team_slug=version.team.slug,
            before=before,
            after=after,
        )
