"""The published schemas, strict as a server with fieldValidation=Strict. Nothing else reads them.

Built-in kinds come with `kubernetes-validate`; custom ones from the folder of CRDs that
SLIPWAY_CRD_DIR names. Without it, tests that need them are skipped with this reason.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate.utils
import pytest
from jsonschema import Draft202012Validator

from slipway_localcluster.schemas.definitions import read_definition

KUBERNETES = "1.34"
_BUILT_IN = ("", "apps", "autoscaling", "networking.k8s.io", "policy", "rbac.authorization.k8s.io")
_NO_FOLDER = (
    "SLIPWAY_CRD_DIR names no folder of CRDs (KServe, Gateway API, KEDA …): schemas of custom kinds "
    "are not checked"
)

Kind = tuple[str, str]

# It would read the definitions of all kinds, 2 MB, anew for each object.
kubernetes_validate.utils.schema_contents = functools.cache(
    kubernetes_validate.utils.schema_contents
)


def is_built_in(manifest: Mapping[str, Any]) -> bool:
    group, _, version = manifest["apiVersion"].rpartition("/")
    return bool(version) and group in _BUILT_IN


def check_built_in(manifest: Mapping[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


class Published(Mapping[Kind, Draft202012Validator]):
    """By apiVersion and kind. A file is read when it is first needed: some have megabytes."""

    def __init__(self, folder: Path) -> None:
        self._paths: dict[tuple[str, str], Path] = {}
        for path in folder.glob("*.yaml"):
            text = path.read_text()
            group = re.search(r"^  group: (\S+)$", text, re.MULTILINE)
            kind = re.search(r"^    kind: (\S+)$", text, re.MULTILINE)
            if group and kind:
                self._paths[group[1], kind[1]] = path

    def __getitem__(self, key: Kind) -> Draft202012Validator:
        group, _, version = key[0].rpartition("/")
        return _versions(self._paths[group, key[1]])[version]

    def __iter__(self) -> Iterator[Kind]:
        for (group, kind), path in self._paths.items():
            yield from ((f"{group}/{version}", kind) for version in _versions(path))

    def __len__(self) -> int:
        return len(list(iter(self)))


def require_custom() -> Published:
    """Skips the test without the folder."""
    folder = os.environ.get("SLIPWAY_CRD_DIR", "")
    if not folder:
        pytest.skip(_NO_FOLDER)
    return _published(folder)


@functools.cache
def _published(folder: str) -> Published:
    return Published(Path(folder))


@functools.cache
def _versions(path: Path) -> Mapping[str, Draft202012Validator]:
    validators = {}
    for version in read_definition(path)["spec"]["versions"]:
        schema = _strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        validators[version["name"]] = Draft202012Validator(schema)
    return validators


def _strict(schema: Any) -> Any:
    """Unknown fields are errors."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {key: _strict(value) for key, value in schema.items() if key != "format"}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in schema and "additionalProperties" not in schema and not is_open:
        made["additionalProperties"] = False
    return made
