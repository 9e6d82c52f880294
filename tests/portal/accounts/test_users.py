from __future__ import annotations

import pytest
from django.core.management import call_command

from portal.accounts import policy
from portal.accounts.models import User


@pytest.mark.django_db
def test_createsuperuser_makes_the_first_platform_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a-long-passphrase")

    call_command("createsuperuser", "--noinput", username="ada", email="ada@example.com")

    ada = User.objects.get(username="ada")
    assert ada.check_password("a-long-passphrase")
    policy.require_platform_admin(ada)
