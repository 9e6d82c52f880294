"""The metadata of a version: well-known texts, metrics (numbers with a direction) and labels.

As stored and as in REST:

    {"dataset_version": "2026-10", "metrics": {"mAP": 0.52}, "directions": {"score": "higher"},
     "labels": {"precision": "int8", "edge": ""}}

On the way in, a number under any other name is a metric and a text is a label, so that a flat
dictionary of a training run can be sent as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from deployments.registry.domain.metadata import metric_direction
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.memory import BITS

METRICS: Final = "metrics"
DIRECTIONS: Final = "directions"
LABELS: Final = "labels"
# Named as Hugging Face does.
SAMPLING_RATE: Final = "sampling_rate"
MAX_METRICS: Final = 1_000
MAX_LABELS: Final = 64
MAX_TEXT_LENGTH: Final = 500
MAX_LABEL_LENGTH: Final = 200
HIGHER: Final = "higher"
LOWER: Final = "lower"
_METRIC: Final = re.compile(r"[A-Za-z][\w.@/%-]{0,79}", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9]([\w./-]{0,61}[A-Za-z0-9])?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NAME_HINT: Final = "use letters, digits and any of . _ - /"

Metadata = dict[str, Any]


class InvalidValue(ValueError):
    """The message names the fix."""


def clean(
    data: Mapping[str, Any], *, is_reference: bool = False
) -> tuple[Metadata, dict[str, str]]:
    """Check metadata. Return it as stored, and problems by field ("metadata.accuracy"). Empty values are
    dropped.

    The keys with the size of external weights are known for a version by reference only; a KV cache may be
    declared for uploaded weights too.
    """
    known = {**TEXTS, **_LANGUAGE_MODEL, **(_EXTERNAL_WEIGHTS if is_reference else {})}
    draft = _Draft()
    for key, value in data.items():
        if value is None or value in ("", [], {}):
            continue
        try:
            draft.add(key, value, known)
        except InvalidValue as error:
            draft.problems[f"metadata.{key}"] = str(error)
    draft.check_counts()
    return draft.stored(), draft.problems


class _Draft:
    def __init__(self) -> None:
        self.texts: dict[str, str | int] = {}
        self.metrics: dict[str, int | float] = {}
        self.labels: dict[str, str] = {}
        self.directions: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    def add(self, key: str, value: Any, known: Mapping[str, Callable[[Any], str | int]]) -> None:
        if key in known:
            self.texts[key] = known[key](value)
        elif key == METRICS:
            for name, number in _entries(value, "name to number"):
                self._add_metric(name, number)
        elif key == LABELS:
            for name, text in _entries(value, "key to text"):
                self._add_label(name, text)
        elif key == DIRECTIONS:
            self.directions = {n: _direction(n, d) for n, d in _entries(value, "name to text")}
        elif isinstance(value, bool) or not (_is_number(value) or key.lower() == "accuracy"):
            self._add_label(key, value)
        else:
            self._add_metric(key, value)

    def _add_metric(self, name: str, value: Any) -> None:
        if not _METRIC.fullmatch(name):
            raise InvalidValue(
                f"'{name[:80]}' is not a valid metric name: start with a letter, at most 80 "
                "characters, letters, digits and any of . _ - / @ %."
            )
        if name.lower() in {other.lower() for other in self.metrics}:
            raise InvalidValue(f"'{name}' appears twice. Case does not count.")
        self.metrics[name] = (
            _accuracy(value) if name.lower() == "accuracy" else _number(name, value)
        )

    def _add_label(self, key: str, value: Any) -> None:
        if not _LABEL.fullmatch(key):
            raise InvalidValue(
                f"'{key[:63]}' is not a valid field name: at most 63 characters, {_NAME_HINT}."
            )
        self.labels[key] = _label_value(key, value)

    def check_counts(self) -> None:
        for name, rows, most in (
            (METRICS, self.metrics, MAX_METRICS),
            (LABELS, self.labels, MAX_LABELS),
        ):
            if len(rows) > most:
                self.problems[f"metadata.{name}"] = f"Enter at most {most} {name}."

    def stored(self) -> Metadata:
        directions = {name: text for name, text in self.directions.items() if name in self.metrics}
        groups = {METRICS: self.metrics, DIRECTIONS: directions, LABELS: self.labels}
        return {**self.texts, **{name: rows for name, rows in groups.items() if rows}}


def metrics_of(metadata: Mapping[str, Any]) -> dict[str, int | float]:
    """Return the metrics, accuracy first, then alphabetical."""
    metrics: Mapping[str, int | float] = metadata.get(METRICS, {})
    return {name: metrics[name] for name in _in_order(metrics)}


def labels_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    return dict(sorted(metadata.get(LABELS, {}).items()))


def metric_names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the metrics of any of them: accuracy first, then alphabetical."""
    return _in_order({name for metadata in rows for name in metadata.get(METRICS, {})})


def flatten(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name, in the order in which they are shown: metrics, texts, sizes, labels."""
    texts = {key: metadata[key] for key in TEXTS if key in metadata}
    sizes = {key: metadata[key] for key in SIZES if key in metadata}
    labels = {f"label {key}": value or "yes" for key, value in labels_of(metadata).items()}
    return {**metrics_of(metadata), **texts, **sizes, **labels}


def read_sampling_rate(metadata: Mapping[str, Any]) -> int | None:
    """Return the sampling rate of the audio that the model takes, in hertz: a custom field or number of this name.
    None if it is not stated.
    """
    stated = labels_of(metadata).get(SAMPLING_RATE) or metrics_of(metadata).get(SAMPLING_RATE, "")
    text = str(stated).removesuffix(".0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else None


def is_higher_better(metadata: Mapping[str, Any], name: str) -> bool | None:
    """Return whether higher values of a metric are better: as declared, or else by its name. None if neither
    says.
    """
    declared = metadata.get(DIRECTIONS, {}).get(name)
    return metric_direction.is_higher_better(name) if declared is None else declared == HIGHER


def format_label(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name.lower() != "accuracy", name.lower()))


def _entries(value: Any, kind: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"Enter an object of {kind}.")
    return value.items()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(name: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidValue(f"{name}: enter a finite number.")
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise InvalidValue(f"{name}: enter a finite number.") from error
    if not math.isfinite(number):
        raise InvalidValue(f"{name}: enter a finite number.")
    return value if isinstance(value, int) else number


def _accuracy(value: Any) -> float:
    message = "Enter accuracy as a number between 0 and 1, for example 0.914."
    try:
        number = float(_number("accuracy", value))
    except InvalidValue as error:
        raise InvalidValue(message) from error
    if not 0 <= number <= 1:
        raise InvalidValue("Accuracy must be between 0 and 1: enter 91.4% as 0.914.")
    return number


def _direction(name: str, value: Any) -> str:
    if value not in (HIGHER, LOWER):
        raise InvalidValue(f"{name}: enter {HIGHER} or {LOWER}, whichever is better.")
    return str(value)


def _label_value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if _is_number(value) else value
    if not isinstance(text, str):
        raise InvalidValue(f"{key}: enter text or a number.")
    if len(text) > MAX_LABEL_LENGTH or _CONTROL.search(text) or "\n" in text:
        raise InvalidValue(f"{key}: enter one line of at most {MAX_LABEL_LENGTH} characters.")
    return text.strip()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue("Enter text.")
    if len(value) > MAX_TEXT_LENGTH:
        raise InvalidValue(f"Enter at most {MAX_TEXT_LENGTH} characters.")
    if "\x00" in value:
        raise InvalidValue("Remove the NUL character.")
    return value.strip()


def _moment(value: Any) -> str:
    try:
        return datetime.fromisoformat(_text(value)).isoformat()
    except ValueError as error:
        raise InvalidValue(
            "Enter a date or time, for example 2026-11-21 or 2026-11-21T10:30."
        ) from error


def _url(value: Any) -> str:
    text = _text(value)
    if not text.startswith(("https://", "http://")):
        raise InvalidValue("Enter a URL that starts with https:// or http://.")
    return text


def _commit(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[0-9a-fA-F]{7,64}", text):
        raise InvalidValue("Enter the commit as 7 to 64 hexadecimal digits.")
    return text


def _millions(value: Any) -> int:
    return _whole(value, maximum=10_000_000, message="Enter millions: 8030 for 8 billion.")


def _tokens(value: Any) -> int:
    message = "Enter tokens as a whole number, for example 32768."
    return _whole(value, maximum=100_000_000, message=message)


def _whole(value: Any, *, maximum: int, message: str) -> int:
    text = str(value).replace(",", "").strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise InvalidValue(message)
    number = int(text) if len(text) < 12 else 0
    if not 1 <= number <= maximum:
        raise InvalidValue(message)
    return number


def _kib(value: Any) -> int:
    message = "Enter KiB as a whole number, for example 128."
    return _whole(value, maximum=1_000_000, message=message)


def _dtype(value: Any) -> str:
    name = declared_size.normalize_dtype(_text(value))
    if not name:
        raise InvalidValue(f"Use one of {', '.join(BITS)}.")
    return name


# Well-known texts, in the order in which they are shown.
TEXTS: Final[Mapping[str, Callable[[Any], str | int]]] = {
    "dataset_version": _text,
    "trained_at": _moment,
    "framework": _text,
    "commit": _commit,
    "run_url": _url,
    "licence": _text,
    "intended_use": _text,
    "notes": _text,
}
_EXTERNAL_WEIGHTS: Final[Mapping[str, Callable[[Any], str | int]]] = {
    declared_size.PARAMETERS: _millions,
    declared_size.DTYPE: _dtype,
    declared_size.CONTEXT: _tokens,
}
_LANGUAGE_MODEL: Final[Mapping[str, Callable[[Any], str | int]]] = {declared_size.KV_CACHE: _kib}
# What a form of other metadata leaves as it is.
SIZES: Final = (*_EXTERNAL_WEIGHTS, *_LANGUAGE_MODEL)
