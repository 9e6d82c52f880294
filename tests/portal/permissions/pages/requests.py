"""Addresses and bodies of several rows. Bodies are what a member could send, so that a refusal is about the actor."""

from __future__ import annotations

from typing import Any, Final

from tests.portal.permissions.matrix import ADMINS, EVERYONE, Row

DEPLOYMENT: Final = "<slug:team>/deployments/<slug:name>"
MODEL: Final = "<slug:team>/models/<slug:name>"
VERSION: Final = f"{MODEL}/<int:number>"
OFFICE_HOURS: Final = "fleet/clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:name>"
BATCH: Final = "<slug:team>/batch/<slug:name>"
PIPELINE: Final = "<slug:team>/pipelines/<slug:name>"
TEAM_PAGE: Final = "admin/teams/<str:slug>"
LOAD_TESTS: Final = "admin/teams/<slug:slug>/load-tests"
PRESETS: Final = "admin/teams/<slug:slug>/deployment-presets"
TEMPLATES: Final = "admin/teams/<slug:slug>/rollout-templates"
CLUSTER: Final = "admin/clusters/<int:cluster_id>"
PERSON: Final = "admin/people/<str:username>"
POLICY: Final = "admin/policy/<int:rule_id>"
NEW_PERSON: Final = {"username": "ana", "password": "three grey herons"}
INVITED: Final = {"name": "Ana", "email": "ana@example.org", "role": "member"}
CALLER: Final = {"name": "x", "kind": "service", "contact": "ana", "days": "90"}
TARGET: Final = {"metric": "availability", "objective_percent": "99", "window_days": "7"}
WHY: Final = {"comment": "tried", "reason": "tried"}
TENSOR: Final = '{"name": "%s", "datatype": "FP32", "shape": [1], "data": [1.0]}'
ANSWER: Final = {
    "name": "other",
    "request": '{"inputs": [' + TENSOR % "x" + "]}",
    "expected": '{"outputs": [' + TENSOR % "y" + "]}",
}


def for_anyone(key: str, status: int = 200, **more: Any) -> Row:
    return Row(key, f"anonymous {EVERYONE}", ok=status, **more)


def of_admins(key: str, ok: int = 200, **more: Any) -> Row:
    """Tells who is no admin so, whatever the team: it hides nothing."""
    return Row(key, ADMINS, ok=ok, stranger=403, **more)
