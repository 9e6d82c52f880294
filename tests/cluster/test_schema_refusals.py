"""Objects that do not fit their schema: a real API server answers 500 to server-side apply."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import Manifest, ManifestContext
from deployments.spec.domain import serving_spec
from fleet.kube.domain.errors import ObjectInvalid
from fleet.kube.services import objects
from fleet.kube.services.objects import Group
from tests.contract.conftest import served

_CONTAINERS = ("spec", "template", "spec", "containers")


def _changed(context: ManifestContext, engine: str, path: tuple[Any, ...], value: Any) -> Manifest:
    """The workload of a revision with one value at a path replaced."""
    manifest = copy.deepcopy(revision.build_own(context, served(engine))[0])
    target: Any = manifest
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return manifest


@pytest.mark.parametrize(
    ("engine", "path", "value", "field"),
    [
        ("triton", ("spec", "replicaz"), 2, "replicaz"),
        ("triton", ("spec", "replicas"), "two", "replicas"),
        ("triton", (*_CONTAINERS, 0, "env"), {"A": "b"}, "env"),
        ("triton", (*_CONTAINERS, 0, "env"), [{"value": "b"}], "env"),
        ("triton", (*_CONTAINERS, 0, "ports"), [{"containerPort": "http"}], "port"),
        ("triton", (*_CONTAINERS, 0, "resources", "limits", "cpu"), "a lot", "quantit"),
        ("kserve-triton", ("spec", "predictorr"), {}, "predictorr"),
        ("kserve-triton", ("spec", "predictor", "minReplicas"), "one", "minReplicas"),
    ],
)
def test_it_is_invalid_and_the_message_names_the_field(
    cluster_id: int, context: ManifestContext, engine: str, path: Any, value: Any, field: str
) -> None:
    manifest = _changed(context, engine, path, value)

    with pytest.raises(ObjectInvalid, match=field):
        objects.dry_run(cluster_id=cluster_id, manifests=[manifest])


def test_refused_objects_postpone_no_others(cluster_id: int, context: ManifestContext) -> None:
    bad = _changed(context, serving_spec.TRITON, ("spec", "replicaz"), 2)
    good = revision.build_own(context, served(serving_spec.TRITON))[1]

    *refused, applied = objects.apply_groups(
        cluster_id=cluster_id, groups=[*([Group([bad])] * 5), Group([good])], dry_run=True
    )

    assert {type(error) for error in refused} == {ObjectInvalid}
    assert isinstance(applied, list)
