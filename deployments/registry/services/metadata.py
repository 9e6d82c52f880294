"""The metadata of a version. Well-known keys have a type; others are free."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments.models import Model, ModelVersion
from deployments.registry.selectors import versions
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.memory import BITS
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

DESCRIBED = register("version.described", "edited the metadata of")
MAX_KEYS: Final = 40
MAX_TEXT_LENGTH: Final = 500
MAX_TAGS: Final = 20
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAG = re.compile(r"[\w][\w.:=/+-]{0,39}")
_Value = str | int | float | list[str]


class _InvalidValue(ValueError):
    pass


def clean(
    data: Mapping[str, Any], *, is_reference: bool = False
) -> tuple[dict[str, _Value], dict[str, str]]:
    """Cleaned values, and problems by field ("metadata.accuracy"). Empty values are dropped.

    The keys with the size of external weights have a type as well.
    """
    cleaners = {**_CLEANERS, **_EXTERNAL_WEIGHTS_CLEANERS} if is_reference else _CLEANERS
    cleaned: dict[str, _Value] = {}
    problems: dict[str, str] = {}
    if len(data) > MAX_KEYS:
        problems["metadata"] = f"Enter at most {MAX_KEYS} fields."
        return cleaned, problems
    for key, value in data.items():
        if value in (None, "", []):
            continue
        try:
            cleaned[key] = _clean_value(key, value, cleaners)
        except _InvalidValue as error:
            problems[f"metadata.{key}"] = str(error)
    return cleaned, problems


def describe(*, actor: User, version_id: int, metadata: Mapping[str, Any]) -> ModelVersion:
    """Replace the metadata of a version, with an audit record. Facts about its bytes never change."""
    version = versions.get_version(actor=actor, version_id=version_id)
    policy.require(actor, Action.UPLOAD, version)
    cleaned, problems = clean(metadata, is_reference=bool(version.source_uri))
    if problems:
        raise Invalid(" ".join(problems.values()), fields=problems)
    if cleaned == version.metadata:
        return version
    at = clock.now()
    with transaction.atomic():
        ModelVersion.objects.filter(pk=version.pk).update(metadata=cleaned)
        Model.objects.filter(pk=version.model_id).update(changed_at=at)
        trail.record(
            actor=actor,
            action=DESCRIBED,
            obj=version,
            label=version.label,
            team_slug=version.team.slug,
            before=version.metadata,
            after=cleaned,
        )
    version.metadata = cleaned
    return version


def _clean_value(key: str, value: Any, cleaners: Mapping[str, Callable[[Any], _Value]]) -> _Value:
    if not _KEY.fullmatch(key):
        raise _InvalidValue(
            f"'{key[:40]}' is not a valid field name: use at most 40 lowercase "
            "letters, digits and '_'."
        )
    return cleaners.get(key, _free)(value)


def _free(value: Any) -> _Value:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _finite(value)
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _InvalidValue("Enter text or a number.")
    if len(value) > MAX_TEXT_LENGTH:
        raise _InvalidValue(f"Enter at most {MAX_TEXT_LENGTH} characters.")
    if "\x00" in value:
        raise _InvalidValue("Remove the NUL character.")
    return value.strip()


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _InvalidValue("Enter a finite number.")
    return value


def _accuracy(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _InvalidValue(
            "Enter accuracy as a number between 0 and 1, for example 0.914."
        ) from error
    if not 0 <= number <= 1:
        raise _InvalidValue("Accuracy must be between 0 and 1: enter 91.4% as 0.914.")
    return number


def _moment(value: Any) -> str:
    try:
        return datetime.fromisoformat(_text(value)).isoformat()
    except ValueError as error:
        raise _InvalidValue(
            "Enter a date or time, for example 2026-11-21 or 2026-11-21T10:30."
        ) from error


def _url(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("https://", "http://")):
        raise _InvalidValue("Enter a URL that starts with https:// or http://.")
    return text


def _commit(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", text):
        raise _InvalidValue("Enter the commit as 7 to 64 hexadecimal digits.")
    return text


def _tags(value: Any) -> list[str]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _InvalidValue("Enter tags as a list of texts.")
    tags = list(dict.fromkeys(item.strip() for item in items if item.strip()))
    if len(tags) > MAX_TAGS or not all(_TAG.fullmatch(tag) for tag in tags):
        raise _InvalidValue(
            f"Enter at most {MAX_TAGS} tags of one word and at most 40 characters each."
        )
    return tags


def _millions(value: Any) -> int:
    return _whole(value, maximum=10_000_000, message="Enter millions: 8030 for 8 billion.")


def _tokens(value: Any) -> int:
    return _whole(
        value, maximum=100_000_000, message=("Enter tokens as a whole number, for example 32768.")
    )


def _whole(value: Any, *, maximum: int, message: str) -> int:
    text = str(value).replace(",", "").strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise _InvalidValue(message)
    number = int(text) if len(text) < 12 else 0
    if not 1 <= number <= maximum:
        raise _InvalidValue(message)
    return number


def _dtype(value: Any) -> str:
    name = declared_size.normalize_dtype(_text(value))
    if not name:
        raise _InvalidValue(f"Use one of {', '.join(BITS)}.")
    return name


_CLEANERS: Final[Mapping[str, Callable[[Any], _Value]]] = {
    "accuracy": _accuracy,
    "dataset_version": _text,
    "trained_at": _moment,
    "commit": _commit,
    "run_url": _url,
    "framework": _text,
    "notes": _text,
    "tags": _tags,
}
_EXTERNAL_WEIGHTS_CLEANERS: Final[Mapping[str, Callable[[Any], _Value]]] = {
    declared_size.PARAMETERS: _millions,
    declared_size.DTYPE: _dtype,
    declared_size.CONTEXT: _tokens,
    "licence": _text,
}
