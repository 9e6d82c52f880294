"""Every list that grows passes the schemas: ours, and the published ones where SLIPWAY_CRD_DIR names them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from deployments.manifests.domain.metadata import ManifestContext
from slipway_localcluster import kinds, validation
from slipway_localcluster.kinds import Kind
from slipway_localcluster.schemas import lookup
from tests.deployments.manifests.growing_lists import CASES, Growing, named

_CONTEXT = ManifestContext("vision", "vision", "detector", 1, False, "gw", "gw", "i", "s")
# Of an object in etcd; a Secret's data and a ConfigMap's count alone.
_MOST_BYTES = 1 << 20
_MOST_ANNOTATIONS = 256 << 10
_FOLDER = os.environ.get("SLIPWAY_CRD_DIR", "")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("", id="own"),
        pytest.param(
            _FOLDER,
            id="published",
            marks=pytest.mark.skipif(not _FOLDER, reason="SLIPWAY_CRD_DIR is not set"),
        ),
    ],
)
def schemas(request: pytest.FixtureRequest) -> Iterator[None]:
    """Read once for all cases: the published ones are some megabytes of YAML."""
    with pytest.MonkeyPatch.context() as patches:
        if request.param:
            patches.setenv("SLIPWAY_CRD_DIR", request.param)
        else:
            patches.delenv("SLIPWAY_CRD_DIR", raising=False)
        lookup.schema_of.cache_clear()
        yield
    lookup.schema_of.cache_clear()


def kind_of(manifest: dict[str, object]) -> Kind:
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    found = [
        kind
        for kind in vars(kinds).values()
        if isinstance(kind, Kind)
        and (kind.group, kind.version, kind.kind) == (group, version, manifest["kind"])
    ]
    return found[0]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_list_of_any_length_is_accepted(schemas: None, case: tuple[Growing, int]) -> None:
    growing, size = case

    for manifest in growing.make(_CONTEXT, size):
        kind = kind_of(manifest)
        checked = validation.drop_unknown_fields(kind, manifest, is_strict=True)
        validation.require_valid(kind, checked.obj)
        assert len(json.dumps(manifest)) < _MOST_BYTES
        annotations = manifest["metadata"].get("annotations", {})
        assert len(json.dumps(annotations)) < _MOST_ANNOTATIONS
