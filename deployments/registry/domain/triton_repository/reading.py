"""The task of the sandbox: read a repository of models, check it, and choose the model to serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployments.registry.domain import triton_config
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import NotServable, quote
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.triton_repository import ensembles, layout, models
from deployments.registry.domain.triton_repository.layout import ModelFolder
from deployments.registry.domain.triton_repository.models import RepositoryModel


def read(argument: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """Read a repository in the sandbox: {"model", the name of the version's model} to facts. Raises NotServable."""
    served_name = str(argument["model"])
    folders = layout.find(artifact.sizes)
    _check_parents(folders)
    by_name = {
        name: models.read(artifact, folder, name)
        for folder, name in ((folder, _name(folder, folders, served_name)) for folder in folders)
    }
    for model in by_name.values():
        _check_name(model, is_single=len(by_name) == 1)
    ensembles.check_nesting(by_name)
    for model in by_name.values():
        if model.is_ensemble:
            ensembles.check(model, by_name)
    main = _main(by_name, served_name)
    ordered = [main, *(model for model in by_name.values() if model is not main)]
    return {
        "models": [_facts(model, artifact) for model in ordered],
        "signature": _signature(main, served_name).to_json(),
        "outside": layout.outside(artifact.sizes, [model.folder for model in ordered])[:20],
    }


def _check_parents(folders: Sequence[ModelFolder]) -> None:
    parents = {folder.parent for folder in folders}
    if len(folders) > 1 and len(parents) > 1:
        listed = ", ".join(sorted(parents)[:5])
        raise NotServable(
            f"The models are in different folders ({listed}). Put all directories of models into one."
        )


def _name(folder: ModelFolder, folders: Sequence[ModelFolder], served_name: str) -> str:
    """Return the model's name. One of several models has the directory's name, which clients and ensembles use."""
    return folder.name if len(folders) > 1 else served_name


def _check_name(model: RepositoryModel, *, is_single: bool) -> None:
    """Check the name in the configuration. Triton refuses one that is not the directory's. A single model is
    renamed.
    """
    stated = model.config.name
    if stated and stated != model.name and not is_single:
        raise NotServable(
            f"The directory {model.name} has a config.pbtxt with the name {quote(stated)}. Use the "
            "same name for both."
        )


def _main(by_name: Mapping[str, RepositoryModel], served_name: str) -> RepositoryModel:
    """Return the model that no other uses; among several of these, the one that is named like the version's."""
    used = {name for model in by_name.values() for name in _uses(model, by_name)}
    tops = [model for name, model in by_name.items() if name not in used]
    named = by_name.get(served_name)
    if len(tops) == 1:
        if named is not None and named is not tops[0]:
            raise NotServable(
                f"{tops[0].name} uses {served_name}, so the repository serves {tops[0].name}. Upload it to a "
                f"model of that name, or rename the directory {served_name}."
            )
        return tops[0]
    if named is not None:
        return named
    listed = ", ".join(sorted(model.name for model in tops or by_name.values()))
    raise NotServable(
        f"The repository has several models that no other uses: {listed}. Upload it to a model with "
        "the name of the one to serve, or upload each to a model of its own."
    )


def _uses(model: RepositoryModel, by_name: Mapping[str, RepositoryModel]) -> set[str]:
    """Return the other models that the model's steps or its code name."""
    names = set(ensembles.list_used_models(model) if model.is_ensemble else model.names)
    return (names & by_name.keys()) - {model.name}


def _facts(model: RepositoryModel, artifact: Artifact) -> dict[str, Any]:
    environment = model.folder.files.get(model.environment, "")
    return {
        "name": model.name,
        "backend": model.backend,
        "config": triton_config.write(model.config),
        "versions": list(model.versions),
        "files": dict(model.folder.files),
        "bytes": model.bytes_of_files(artifact),
        "environment_bytes": artifact.sizes[environment] if environment else 0,
        "states_gpu": model.states_gpu,
        "has_code": model.has_code,
    }


def _signature(main: RepositoryModel, name: str) -> Signature:
    stated = triton_config.signature_of(main.config)
    config = triton_config.schema.new_config()
    config.CopyFrom(main.config)
    config.name = name
    backend = replace(
        stated.backend,
        name=main.backend,
        model_file=main.model_file,
        config=triton_config.write(config),
    )
    return replace(stated, backend=backend)
