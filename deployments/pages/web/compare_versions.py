"""A comparison of two versions of a model: one row for each metric, label, part of the signature, size and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.models import ModelVersion
from deployments.registry.domain import comparison, signatures
from deployments.registry.domain.comparison import ComparedFact, NumberPair
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.web import signature
from portal.accounts.models import User
from portal.core.definitions.figures import format_milliseconds, format_seconds
from portal.core.errors import Invalid
from portal.ui import formats
from portal.ui.access import people_only
from portal.ui.htmx import respond

_MAX_FACTS = 200


@require_GET
@people_only
def compare(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    model = registry_versions.get_model(actor=user, team_slug=team, name=name)
    numbers = [int(text) for text in request.GET.getlist("v") if text.isascii() and text.isdigit()]
    if len(numbers) != 2:
        raise Invalid("Choose exactly two versions to compare.")
    left, right = (
        registry_versions.get_version_by_number(actor=user, team_slug=team, name=name, number=n)
        for n in sorted(numbers)
    )
    context = {
        "model": model,
        "left": left,
        "right": right,
        "left_config": signature.truncate(left.config_pbtxt),
        "right_config": signature.truncate(right.config_pbtxt),
        "groups": [
            (title, *comparison.truncate(facts, _MAX_FACTS))
            for title, facts in _groups(left, right)
        ],
    }
    return respond(request, "pages/compare.html", context)


def _groups(left: ModelVersion, right: ModelVersion) -> list[tuple[str, list[ComparedFact]]]:
    return [
        ("Metrics", comparison.compare_metrics(left.metadata, right.metadata)),
        ("Size", _compare_sizes(left, right)),
        ("Speed", _compare_times(left, right)),
        ("Metadata", comparison.compare(_list_texts(left), _list_texts(right))),
        ("Labels", comparison.compare(_list_labels(left), _list_labels(right))),
        (
            "Signature",
            comparison.compare(
                comparison.list_facts(signatures.from_json(left.signature)),
                comparison.list_facts(signatures.from_json(right.signature)),
            ),
        ),
        ("Artifact", comparison.compare(_describe_file(left), _describe_file(right))),
        ("Files", comparison.compare(_list_files(left), _list_files(right))),
    ]


def _compare_sizes(left: ModelVersion, right: ModelVersion) -> list[ComparedFact]:
    sizes = _pair_up(
        left,
        right,
        {"files": lambda row: row.size_bytes or row.declared_size_bytes},
        is_lower_better=False,
    )
    memory = _pair_up(
        left,
        right,
        {
            "GPU memory, estimate": lambda row: row.vram_estimate_mib,
            "GPU memory, load test": lambda row: _read(row, "gpu_memory_mib"),
            "memory, load test": lambda row: _read(row, "memory_mib"),
        },
    )
    return [
        *comparison.compare_numbers(sizes, lambda count: formats.filesize(int(count))),
        *comparison.compare_numbers(memory, formats.mib),
    ]


def _compare_times(left: ModelVersion, right: ModelVersion) -> list[ComparedFact]:
    """Compare what the load tests measured."""
    load = _pair_up(left, right, {"loaded in": lambda row: _read(row, "load_seconds")})
    answers = _pair_up(
        left,
        right,
        {
            "first answer": lambda row: _read(row, "first_ms"),
            "warm request": lambda row: _read(row, "warm_ms"),
        },
    )
    return [
        *comparison.compare_numbers(load, format_seconds),
        *comparison.compare_numbers(answers, format_milliseconds),
    ]


def _pair_up(
    left: ModelVersion,
    right: ModelVersion,
    numbers: dict[str, Callable[[ModelVersion], float | None]],
    *,
    is_lower_better: bool = True,
) -> list[NumberPair]:
    """Read both numbers of each name. Zero was not measured."""
    return [
        NumberPair(
            name,
            read(left) or None,
            read(right) or None,
            is_higher_better=False if is_lower_better else None,
        )
        for name, read in numbers.items()
    ]


def _read(version: ModelVersion, name: str) -> float | None:
    """Return a number of the load test. None if the version was not loaded."""
    test = results.read_load_test(version.signature)
    return None if test is None else getattr(test, name)


def _list_texts(version: ModelVersion) -> dict[str, Any]:
    """Return the metadata without metrics and labels."""
    metadata = version.metadata
    others = (version_metadata.METRICS, version_metadata.LABELS, version_metadata.DIRECTIONS)
    return version_metadata.flatten(
        {key: value for key, value in metadata.items() if key not in others}
    )


def _list_labels(version: ModelVersion) -> dict[str, str]:
    labels = version_metadata.labels_of(version.metadata)
    return {key: value or "yes" for key, value in labels.items()}


def _describe_file(version: ModelVersion) -> dict[str, Any]:
    return {
        "state": version.state,
        "reference": version.source_uri,
        "file": version.filename,
        "format": catalogue.describe(version.format),
        "SHA-256": version.sha256[:16],
    }


def _list_files(version: ModelVersion) -> dict[str, str]:
    """Map the path of each file to the beginning of its SHA-256, or to its size before the verification."""
    return {
        file.path: file.sha256[:16] or f"{file.size_bytes:,} bytes" for file in version.files.all()
    }
