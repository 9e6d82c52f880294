"""The request of a new deployment as text: the form's fields as YAML and back, and as scripts.

The shape is the body of POST /api/v1/deployments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django import forms

from deployments.web.service_forms import ServiceForm

LONGEST = 20_000
_SPEC_NUMBERS = ("min_replicas", "max_replicas")
_SPEC_TEXTS = ("engine", "cpu", "memory")
_KNOWN = {"version_id", "cluster_id", "name", "spec", "comment"}


class YamlForm(ServiceForm):
    yaml = forms.CharField(
        label="Request",
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 22, "spellcheck": "false", "class": "mono"}),
    )


@dataclass(frozen=True, slots=True)
class Snippet:
    title: str
    text: str


def body_of(data: Mapping[str, str]) -> dict[str, Any]:
    """The form's texts as the API's body; numbers that are none stay as typed."""
    instance_type, gpu_resource, gpus = (data.get("share", "") + "||").split("|")[:3]
    spec: dict[str, Any] = {"engine": data.get("engine", ""), "instance_type": instance_type}
    spec |= {"gpu_resource": gpu_resource, "gpus": _number(gpus)}
    spec |= {name: _number(data.get(name, "")) for name in _SPEC_NUMBERS}
    spec |= {"cpu": data.get("cpu", ""), "memory": data.get("memory", "")}
    pairs = (line.partition("=") for line in data.get("env", "").splitlines() if line.strip())
    spec["env"] = {name.strip(): value for name, _, value in pairs}
    body: dict[str, Any] = {
        "name": data.get("name", ""),
        "version_id": _number(data.get("version", "")),
    }
    body |= {"cluster_id": _number(data.get("cluster", "")), "spec": spec}
    return body | {"comment": data.get("comment", "")}


def text_of(data: Mapping[str, str]) -> str:
    return yaml.safe_dump(body_of(data), sort_keys=False, allow_unicode=True)


def read(text: str) -> dict[str, str]:
    """Back into the form's fields. Raises forms.ValidationError with the line and the fix."""
    try:
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise forms.ValidationError(f"This is no YAML{where}. Mend it, or go back.") from error
    spec = body.get("spec", {}) if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(spec, dict):
        raise forms.ValidationError("Write name, version_id, cluster_id and spec as a mapping.")
    unknown = sorted(str(name) for name in set(body) - _KNOWN)
    if unknown:
        raise forms.ValidationError(f"There is no field {unknown[0]!r}; leave it out.")
    env = spec.get("env") or {}
    if not isinstance(env, dict):
        raise forms.ValidationError("spec.env must map names to values.")
    return _fields(body, spec, env)


def snippets(*, body: Mapping[str, Any], url: str) -> list[Snippet]:
    text = json.dumps(body, indent=2)
    python = (
        "import os\n\nimport httpx\n\n"
        f"answer = httpx.post(\n    {url!r},\n"
        "    headers={'Authorization': f\"Bearer {os.environ['SLIPWAY_TOKEN']}\"},\n"
        f"    json={_python(body)},\n)\nanswer.raise_for_status()\nprint(answer.json())\n"
    )
    curl = (
        f"curl --fail-with-body -X POST {url} \\\n"
        '  -H "Authorization: Bearer $SLIPWAY_TOKEN" \\\n'
        f"  -H 'Content-Type: application/json' \\\n  --data-binary @- <<'JSON'\n{text}\nJSON\n"
    )
    as_yaml = yaml.safe_dump(dict(body), sort_keys=False, allow_unicode=True)
    return [Snippet("Python", python), Snippet("curl", curl), Snippet("YAML", as_yaml)]


def _python(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, indent=4).replace("\n", "\n    ")
    return (
        text.replace(": null", ": None").replace(": true", ": True").replace(": false", ": False")
    )


def _fields(
    body: Mapping[str, Any], spec: Mapping[str, Any], env: Mapping[str, Any]
) -> dict[str, str]:
    share = (spec.get("instance_type", ""), spec.get("gpu_resource", ""), spec.get("gpus", ""))
    found = {name: spec.get(name, "") for name in (*_SPEC_NUMBERS, *_SPEC_TEXTS)}
    found |= {"version": body.get("version_id", ""), "cluster": body.get("cluster_id", "")}
    found |= {"name": body.get("name", ""), "comment": body.get("comment", "")}
    found["share"] = "|".join(str(part) for part in share)
    found["env"] = "\n".join(f"{name}={value}" for name, value in env.items())
    return {name: "" if value is None else str(value) for name, value in found.items()}


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
