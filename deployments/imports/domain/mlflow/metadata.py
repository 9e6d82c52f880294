"""The data that a version takes over from MLflow: metadata, README, and facts that are kept with the import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.imports.domain.mlflow import servers
from deployments.imports.domain.mlflow.answers import MlflowVersion, Run
from deployments.imports.domain.mlflow.model_folder import ModelFile, Selection
from deployments.registry.domain.metadata import version_metadata

# Leaves room for what people add.
_MAX_METRICS: Final = 900
_MAX_LABELS: Final = 40
_MAX_KEPT: Final = 500
_MAX_TEXT: Final = 500
_OWN_TAGS: Final = "mlflow."
_COMMIT: Final = "mlflow.source.git.commit"
PARAMETER: Final = "param/"
LABEL: Final = "mlflow"


def metadata_of(
    version: MlflowVersion, run: Run | None, selection: Selection, *, address: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata, and the names of the metrics, parameters and tags that have no place in it."""
    page = servers.version_page(address, name=version.name, number=version.number)
    if run is not None:
        page = servers.run_page(address, experiment_id=run.experiment_id, run_id=run.run_id)
    ended_at = (run.ended_at if run else None) or version.created_at
    texts = {
        "framework": selection.library,
        "run_url": page,
        "commit": run.tags.get(_COMMIT, "") if run else "",
        "dataset_version": run.dataset if run else "",
        "trained_at": ended_at.isoformat() if ended_at else "",
    }
    metrics, without_metric = _accepted(
        version_metadata.METRICS, run.metrics if run else {}, at_most=_MAX_METRICS
    )
    labels, without_label = _accepted(
        version_metadata.LABELS, _labels(version, run), at_most=_MAX_LABELS
    )
    kept = {name: text for name, text in texts.items() if _is_accepted({name: text})}
    groups = {version_metadata.METRICS: metrics, version_metadata.LABELS: labels}
    return kept | {name: rows for name, rows in groups.items() if rows}, [
        *without_metric,
        *without_label,
    ]


def facts_of(
    version: MlflowVersion, run: Run | None, model: ModelFile, selection: Selection
) -> dict[str, Any]:
    """Return the facts that metadata has no room for, and the files that were not imported. Texts
    are cut at 500 characters, lists at 500 entries.
    """
    return {
        "flavor": selection.flavor,
        "model_class": str(model.flavors[selection.flavor].get("model_class") or "")[:_MAX_TEXT],
        "flavors": sorted(model.flavors),
        "run_id": version.run_id,
        "run_name": _cut(run.name) if run else "",
        "signature": dict(model.signature),
        "parameters": _some(run.parameters) if run else {},
        "tags": _some({**(_own(run.tags) if run else {}), **_own(version.tags)}),
        "aliases": list(version.aliases[:_MAX_KEPT]),
        "left_out": list(selection.left_out[:_MAX_KEPT]),
    }


def _labels(version: MlflowVersion, run: Run | None) -> dict[str, str]:
    """Return the labels, tags first: people set them for others to read."""
    tags = {**(_own(run.tags) if run else {}), **_own(version.tags)}
    parameters = run.parameters if run else {}
    named = {f"{PARAMETER}{name}": text for name, text in parameters.items()}
    return {LABEL: f"{version.name}/{version.number}", **tags, **named}


def _accepted(
    group: str, rows: Mapping[str, Any], *, at_most: int
) -> tuple[dict[str, Any], list[str]]:
    accepted: dict[str, Any] = {}
    refused = []
    seen: set[str] = set()
    for name, value in rows.items():
        is_new = name.lower() not in seen and len(accepted) < at_most
        if is_new and _is_accepted({group: {name: value}}):
            accepted[name] = value
            seen.add(name.lower())
        else:
            refused.append(_cut(name))
    return accepted, refused[:_MAX_KEPT]


def _is_accepted(metadata: Mapping[str, Any]) -> bool:
    cleaned, problems = version_metadata.clean(metadata)
    return bool(cleaned) and not problems


def _own(tags: Mapping[str, str]) -> dict[str, str]:
    """Drop the tags that MLflow itself sets, and keep those that people set."""
    return {name: text for name, text in tags.items() if not name.startswith(_OWN_TAGS)}


def _some(rows: Mapping[str, str]) -> dict[str, str]:
    return {_cut(name): _cut(text) for name, text in list(rows.items())[:_MAX_KEPT]}


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
