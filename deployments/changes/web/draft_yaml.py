"""The request of a new deployment as text: YAML and back, and scripts that send the same."""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.request_body import Unreadable
from portal.core import documents
from portal.ui.service_form import ServiceForm

MAX_LENGTH = 20_000


class YamlForm(ServiceForm):
    yaml = forms.CharField(
        label="Request",
        max_length=MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 22, "spellcheck": "false", "class": "mono"}),
    )


@dataclass(frozen=True, slots=True)
class DraftSnippet:
    title: str
    text: str


def text_of(data: Mapping[str, str]) -> str:
    return yaml.safe_dump(request_body.body_of(data), sort_keys=False, allow_unicode=True)


def read(text: str) -> dict[str, str]:
    """Read the YAML into the form's fields. Raises forms.ValidationError with the place and the
    fix.
    """
    try:
        return request_body.fields_of(documents.read_yaml(text))
    except documents.UnreadableDocument as error:
        place = f"{error.place}: " if error.place else ""
        raise forms.ValidationError(f"{place}{error.message} Fix it or go back.") from error
    except Unreadable as error:
        raise forms.ValidationError(str(error)) from error


def snippets(*, body: Mapping[str, Any], url: str) -> list[DraftSnippet]:
    """Return scripts that run once SLIPWAY_TOKEN is set."""
    text = json.dumps(body, indent=2)
    python = (
        "import os\n\nimport httpx\n\n"
        f"answer = httpx.post(\n    {url!r},\n"
        "    headers={'Authorization': f\"Bearer {os.environ['SLIPWAY_TOKEN']}\"},\n"
        f"    json={_python(body)},\n)\nanswer.raise_for_status()\nprint(answer.json())\n"
    )
    # A quoted heredoc: the shell expands nothing in the body.
    curl = (
        f"curl --fail-with-body -X POST {url} \\\n"
        '  -H "Authorization: Bearer $SLIPWAY_TOKEN" \\\n'
        f"  -H 'Content-Type: application/json' \\\n  --data-binary @- <<'JSON'\n{text}\nJSON\n"
    )
    as_yaml = yaml.safe_dump(dict(body), sort_keys=False, allow_unicode=True)
    return [
        DraftSnippet("Python", python),
        DraftSnippet("curl", curl),
        DraftSnippet("YAML", as_yaml),
    ]


def _python(body: Mapping[str, Any]) -> str:
    text = pprint.pformat(dict(body), indent=1, width=88, sort_dicts=False)
    return text.replace("\n", "\n         ")
