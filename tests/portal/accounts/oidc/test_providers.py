"""Providers from environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal import env
from portal.accounts.oidc import providers
from portal.accounts.oidc.rules import Rule

OKTA = {
    "SLIPWAY_OIDC_OKTA_ISSUER": "https://example.okta.com",
    "SLIPWAY_OIDC_OKTA_CLIENT_ID": "abc",
    "SLIPWAY_OIDC_OKTA_CLIENT_SECRET": "hush",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in OKTA.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_provider_has_defaults_and_does_not_show_its_secret(
    environment: pytest.MonkeyPatch,
) -> None:
    (okta,) = providers.read(["okta"])

    assert (okta.name, okta.label, okta.client_id, okta.client_secret) == (
        "okta",
        "Okta",
        "abc",
        "hush",
    )
    assert okta.scopes == ("openid", "profile", "email")
    assert okta.rules == ()
    assert "hush" not in repr(okta)


def test_secrets_and_rules_may_be_files_and_names_have_dashes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "rules").write_text("# leads\ngroups=a -> vision lead\n")
    monkeypatch.setenv("SLIPWAY_OIDC_MY_LAB_ISSUER", "http://127.0.0.1:9400")
    monkeypatch.setenv("SLIPWAY_OIDC_MY_LAB_CLIENT_ID", "abc")
    monkeypatch.setenv("SLIPWAY_OIDC_MY_LAB_CLIENT_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("SLIPWAY_OIDC_MY_LAB_RULES_FILE", str(tmp_path / "rules"))

    (lab,) = providers.read(["my-lab"])

    assert lab.client_secret == "hush"
    assert lab.rules == (Rule("groups", "a", "vision", "lead"),)


def test_rules_fit_on_one_line(environment: pytest.MonkeyPatch) -> None:
    environment.setenv(
        "SLIPWAY_OIDC_OKTA_RULES", "groups=a -> vision lead; groups=b -> platform-admin"
    )

    (okta,) = providers.read(["okta"])

    assert [rule.role for rule in okta.rules] == ["lead", "platform-admin"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ISSUER", "http://example.okta.com"),
        ("ISSUER", "https://user:password@example.okta.com"),
        ("ISSUER", "https://example.okta.com?x=y"),
        ("ISSUER", "example.okta.com"),
        ("ISSUER", "https://[::1"),
        ("CLIENT_ID", ""),
        ("CLIENT_SECRET", ""),
        ("SCOPES", "profile,email"),
        ("REQUIRED_CLAIMS", "hd"),
        ("RULES", "groups=a -> vision boss"),
        ("USERINFO", "maybe"),
    ],
)
def test_what_cannot_be_used_ends_the_start_and_is_named(
    environment: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    environment.setenv(f"SLIPWAY_OIDC_OKTA_{variable}", value)

    with pytest.raises(env.BadEnvironment, match=f"SLIPWAY_OIDC_OKTA_{variable}"):
        providers.read(["okta"])


@pytest.mark.parametrize("names", [["Okta"], ["okta/x"], ["okta", "okta"], [""]])
def test_names_are_lowercase_and_given_once(
    environment: pytest.MonkeyPatch, names: list[str]
) -> None:
    with pytest.raises(env.BadEnvironment, match="SLIPWAY_OIDC"):
        providers.read(names)
