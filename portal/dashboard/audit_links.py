"""The page of the object that an event of the trail is about."""

from __future__ import annotations

import re
from typing import Final

from django.urls import reverse

from portal.audit.models import AuditEvent

# By type: the page, given the team and name in the label.
_NAMED: Final = {
    "deployment": "deployment",
    "rollout": "rollout",
    "pipeline": "pipeline",
    "model": "model",
    "alias": "model",
    "batchjob": "batch-job",
}
# By type: the page, given the id.
_NUMBERED: Final = {"changerequest": "change", "fleetaction": "fleet-action"}
_FOR_ADMINS: Final = {"cluster": "admin-cluster"}
_NAME: Final = re.compile(
    r"(?:batch job )?(?:(?P<team>[-\w]+)/)?(?P<name>[-\w]+)(?:@[-\w.]+)?", re.ASCII
)
_VERSION: Final = re.compile(r"(?:(?P<team>[-\w]+)/)?(?P<name>[-\w]+):(?P<number>\d+)", re.ASCII)
_USER: Final = re.compile(r"[-\w.@+]+", re.ASCII)
_SLUG: Final = re.compile(r"[-\w]+", re.ASCII)


def find_page(event: AuditEvent, *, is_admin: bool) -> str:
    """Return the address of the object's page. Empty if it has none, or none that the reader may see."""
    kind, key, label = event.object_type, event.object_id, event.object_label
    numbered = _NUMBERED | _FOR_ADMINS if is_admin else _NUMBERED
    if kind in numbered and key.isdecimal():
        return reverse(numbered[kind], args=(int(key),))
    if kind == "user" and is_admin and _USER.fullmatch(label):
        return reverse("admin-person", args=(label,))
    if kind == "team" and _SLUG.fullmatch(event.team_slug):
        return reverse("admin-team", args=(event.team_slug,))
    pattern = _VERSION if kind == "modelversion" else _NAME
    match = pattern.fullmatch(label)
    team = match and (match["team"] or event.team_slug)
    if match is None or not team:
        return ""
    if kind == "modelversion":
        return reverse("version", args=(team, match["name"], int(match["number"])))
    return reverse(_NAMED[kind], args=(team, match["name"])) if kind in _NAMED else ""
