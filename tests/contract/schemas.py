"""The published schemas, strict as a server with fieldValidation=Strict. Nothing else reads them.

Built-in kinds come with `kubernetes-validate`; custom ones from the folder of CRDs that
SLIPWAY_CRD_DIR names. Without it, what needs them is skipped in these words.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

KUBERNETES = "1.34"
_BUILT_IN = ("", "apps", "autoscaling", "networking.k8s.io", "policy", "rbac.authorization.k8s.io")
_NO_FOLDER = (
    "SLIPWAY_CRD_DIR names no folder of CRDs (KServe, Gateway API, KEDA …): schemas of custom kinds "
    "are not checked"
)

Kind = tuple[str, str]


def is_built_in(manifest: Mapping[str, Any]) -> bool:
    group, _, version = manifest["apiVersion"].rpartition("/")
    return bool(version) and group in _BUILT_IN


def check_built_in(manifest: Mapping[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def require_custom() -> Mapping[Kind, Draft202012Validator]:
    """By apiVersion and kind; skips the test without the folder."""
    folder = os.environ.get("SLIPWAY_CRD_DIR", "")
    if not folder:
        pytest.skip(_NO_FOLDER)
    return _read(folder)


@functools.cache
def _read(folder: str) -> Mapping[Kind, Draft202012Validator]:
    found = {}
    for path in Path(folder).glob("*.yaml"):
        definition = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        if definition.get("kind") != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        for version in spec["versions"]:
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            found[key] = Draft202012Validator(schema)
    return found


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
