"""A key for one person who tries a deployment: one click, a day, the same rule as for every other key."""

from __future__ import annotations

import re
from typing import Final

from deployments.access.domain.kind import Credential
from deployments.callers.services import key_rows, keys
from deployments.callers.services.issuing import NewKey
from deployments.callers.services.keys import KeyDraft
from deployments.models import Deployment
from deployments.serving.selectors import deployments
from deployments.states import ConsumerKind
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.core.errors import Conflict

DAYS: Final = 1
_PREFIX: Final = "try-"
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_MAX_LENGTH: Final = 40


def takes_key(deployment: Deployment) -> bool:
    """Whether the gateway asks callers of this deployment for keys of the portal."""
    access = deployments.access_of(deployment)
    return not access.opens_to_everyone and access.creates == Credential.KEY


def create(*, actor: User, deployment_id: int) -> NewKey:
    """Create a key that ends after a day, of a caller named after the actor. Raises Conflict where no keys are used."""
    deployment = key_rows.changeable(actor, deployment_id)
    step_up.require(actor)
    if not takes_key(deployment):
        raise Conflict(f"{deployment} does not ask for keys.", code="no_keys")
    contact = actor.email or actor.display_name
    draft = KeyDraft(name_caller(actor), ConsumerKind.PERSON, contact, days=DAYS)
    return keys.create(actor=actor, deployment_id=deployment.pk, draft=draft)


def name_caller(user: User) -> str:
    """Name the caller after the person, as names of callers are written."""
    name = _OTHERS.sub("-", f"{_PREFIX}{user.username.lower()}")
    return name[:_MAX_LENGTH].strip("-")
