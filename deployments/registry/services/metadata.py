"""What people state about a version. The keys that pages compare have a type; others are free."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments.domain import stated_models
from deployments.domain.sizing_needs import BITS
from deployments.models import Model, ModelVersion
from deployments.selectors import registry
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid

DESCRIBED = register("version.described", "corrected the metadata of")
MOST_KEYS: Final = 40
LONGEST_TEXT: Final = 500
MOST_TAGS: Final = 20
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAG = re.compile(r"[\w][\w.:=/+-]{0,39}")
_Value = str | int | float | list[str]


class _Wrong(ValueError):
    pass


def clean(
    data: Mapping[str, Any], *, is_reference: bool = False
) -> tuple[dict[str, _Value], dict[str, str]]:
    """Cleaned values, and problems by field ("metadata.accuracy"). Empty values are left out.

    Of a version by reference nothing but this tells its size, so those keys have a type as well.
    """
    known = {**_KNOWN, **_OF_REFERENCES} if is_reference else _KNOWN
    cleaned: dict[str, _Value] = {}
    problems: dict[str, str] = {}
    if len(data) > MOST_KEYS:
        problems["metadata"] = f"Keep to {MOST_KEYS} keys."
        return cleaned, problems
    for key, value in data.items():
        if value in (None, "", []):
            continue
        try:
            cleaned[key] = _clean_one(key, value, known)
        except _Wrong as wrong:
            problems[f"metadata.{key}"] = str(wrong)
    return cleaned, problems


def describe(*, actor: User, version_id: int, metadata: Mapping[str, Any]) -> ModelVersion:
    """Replace what is stated of a version, with a row in the trail. Facts about bytes never change."""
    version = registry.get_version(actor=actor, version_id=version_id)
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


def _clean_one(key: str, value: Any, known: Mapping[str, Callable[[Any], _Value]]) -> _Value:
    if not _KEY.fullmatch(key):
        raise _Wrong(f"{key[:40]!r} is no key: use lower-case letters, digits and '_', at most 40.")
    return known.get(key, _free)(value)


def _free(value: Any) -> _Value:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _finite(value)
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("Write a text or a number.")
    if len(value) > LONGEST_TEXT:
        raise _Wrong(f"Keep it to {LONGEST_TEXT} characters.")
    if "\x00" in value:
        raise _Wrong("The text holds a NUL character; remove it.")
    return value.strip()


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _Wrong("Write a finite number.")
    return value


def _accuracy(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Wrong("Write accuracy as a number between 0 and 1, such as 0.914.") from error
    if not 0 <= number <= 1:
        raise _Wrong("Accuracy is between 0 and 1; 91.4 % is 0.914.")
    return number


def _moment(value: Any) -> str:
    try:
        return datetime.fromisoformat(_text(value)).isoformat()
    except ValueError as error:
        raise _Wrong("Write the time as in 2026-11-21T10:30, or only the date.") from error


def _url(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("https://", "http://")):
        raise _Wrong("Write a link that begins with https:// or http://.")
    return text


def _commit(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", text):
        raise _Wrong("Write the commit as 7 to 64 hexadecimal digits.")
    return text


def _tags(value: Any) -> list[str]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _Wrong("Write tags as a list of words.")
    tags = list(dict.fromkeys(item.strip() for item in items if item.strip()))
    if len(tags) > MOST_TAGS or not all(_TAG.fullmatch(tag) for tag in tags):
        raise _Wrong(f"At most {MOST_TAGS} tags, each one word of at most 40 characters.")
    return tags


def _millions(value: Any) -> int:
    return _whole(value, most=10_000_000, words="Write millions: 8030 for 8 billion.")


def _tokens(value: Any) -> int:
    return _whole(value, most=100_000_000, words="Write tokens as a whole number: 32768.")


def _whole(value: Any, *, most: int, words: str) -> int:
    text = str(value).replace(",", "").strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise _Wrong(words)
    number = int(text) if len(text) < 12 else 0
    if not 1 <= number <= most:
        raise _Wrong(words)
    return number


def _dtype(value: Any) -> str:
    name = stated_models.dtype_named(_text(value))
    if not name:
        raise _Wrong(f"Use one of {', '.join(BITS)}.")
    return name


_KNOWN: Final[Mapping[str, Callable[[Any], _Value]]] = {
    "accuracy": _accuracy,
    "dataset_version": _text,
    "trained_at": _moment,
    "commit": _commit,
    "run_url": _url,
    "framework": _text,
    "notes": _text,
    "tags": _tags,
}
_OF_REFERENCES: Final[Mapping[str, Callable[[Any], _Value]]] = {
    stated_models.PARAMETERS: _millions,
    stated_models.DTYPE: _dtype,
    stated_models.CONTEXT: _tokens,
    "licence": _text,
}
