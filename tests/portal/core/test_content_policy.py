"""The policy header follows its setting."""

from __future__ import annotations

from typing import Any

from django.test import Client


def test_another_setting_is_another_policy(settings: Any) -> None:
    before = Client().get("/healthz").headers["Content-Security-Policy"]
    policy = settings.CONTENT_SECURITY_POLICY
    directives = {**policy["DIRECTIVES"], "connect-src": ["https://bucket.example"]}
    settings.CONTENT_SECURITY_POLICY = policy | {"DIRECTIVES": directives}

    after = Client().get("/healthz").headers["Content-Security-Policy"]

    assert "https://bucket.example" in after
    assert "https://bucket.example" not in before
