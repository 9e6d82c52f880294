"""Rows as requests, and answers as verdicts."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx

from tests.fidelity.row import Row

# A real server asks for the rest of a schema to be right before it checks its rules, and says so.
_UNCHECKED_RULES = "<nil>"
_TYPED_FAULT = re.compile(
    r"(\.\S+): (expected [a-z() ]+|field not declared in schema|duplicate entries for key \S+)"
)
_OPTIONS = {"dryRun": "All", "fieldManager": "slipway", "fieldValidation": "Strict"}


def request_of(row: Row, namespace: str) -> dict[str, Any]:
    """A dry run, as the portal sends it: strict, forced server-side apply."""
    collection = row.collection.format(namespace=namespace)
    body = json.dumps(row.manifest)
    if row.is_created:
        headers = {"Content-Type": "application/json"}
        return _request("POST", collection, body, headers, _OPTIONS)
    headers = {"Content-Type": "application/apply-patch+yaml"}
    url = f"{collection}/{row.manifest['metadata']['name']}"
    return _request("PATCH", url, body, headers, {**_OPTIONS, "force": "true"})


def _request(
    method: str, url: str, body: str, headers: dict[str, str], query: dict[str, str]
) -> dict[str, Any]:
    return {"method": method, "url": url, "content": body, "headers": headers, "params": query}


def verdict_of(answer: httpx.Response) -> dict[str, Any]:
    """Status, reason, the fields that are named, and what is said of the types."""
    if answer.status_code < 300:
        return {"status": "accepted"}
    body = answer.json()
    verdict: dict[str, Any] = {"status": answer.status_code}
    if "reason" in body:
        verdict["reason"] = body["reason"]
    causes = body.get("details", {}).get("causes", [])
    fields = {cause.get("field", "") for cause in causes} - {_UNCHECKED_RULES}
    if fields:
        verdict["fields"] = sorted(fields)
    if answer.status_code == 500:
        faults = _TYPED_FAULT.findall(body["message"])
        verdict["faults"] = [f"{place}: {fault}" for place, fault in faults]
    return verdict
