"""A provider with rules, its provisioning token, and a client that sends requests with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from portal.accounts.models import User
from portal.accounts.oidc import rules
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import tokens
from tests.accounts import make_team, make_user

RULES = rules.parse(
    """
    groups=vision-leads -> vision lead
    groups=slipway-{team} -> {team} member
    groups=8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159 -> nlp viewer
    groups=slipway-admins -> platform-admin
    """
)


@dataclass
class Provisioner:
    """`token` empty: none is sent."""

    token: str
    client: Client = field(default_factory=Client)

    def send(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.client.generic(
            method.upper(),
            f"/scim/v2/{path}",
            "" if body is None else json.dumps(body),
            content_type="application/scim+json",
            headers=headers,
            query_params=query,
        )

    def create(self, path: str, body: dict[str, Any]) -> str:
        answer = self.send("post", path, body)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["id"])


@pytest.fixture
def provider(db: None, settings: Any) -> Provider:
    cache.clear()
    lab = Provider(
        name="lab",
        label="Lab",
        issuer="https://lab.example",
        client_id="slipway",
        client_secret="not a secret",
        rules=RULES,
    )
    settings.SLIPWAY_OIDC = (lab,)
    make_team(slug="vision")
    make_team(slug="nlp")
    return lab


@pytest.fixture
def admin(provider: Provider) -> User:
    user = make_user(username="root")
    user.is_platform_admin = True
    user.save()
    return user


@pytest.fixture
def scim(admin: User) -> Provisioner:
    return Provisioner(tokens.create(actor=admin, provider_name="lab").plain)
