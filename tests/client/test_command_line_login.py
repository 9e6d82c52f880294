"""`slipway login`: what is stored, who reads it, and what a token can do."""

from __future__ import annotations

import io
import stat

import pytest

from deployments.models import ChangeRequest
from portal.accounts import tokens
from slipway_client import login
from tests.client.conftest import PORTAL
from tests.client.terminal import Terminal, run
from tests.deployments.world import World


def test_login_stores_a_token_that_works_and_only_its_owner_reads_it(world: World) -> None:
    token = tokens.create(actor=world.member, name="terminal").plain

    done = run(["login", f"{PORTAL}/"], io.StringIO(f"{token}\n"))
    me = run(["whoami", "--json"])

    assert done.code == 0, done.err
    assert stat.S_IMODE(login.path().stat().st_mode) == 0o600
    assert stat.S_IMODE(login.path().parent.stat().st_mode) == 0o700
    assert me.json["username"] == "member"
    assert token not in done.out + done.err + me.out + me.err
    assert run(["logout"]).code == 0
    assert run(["whoami"]).code == 4


def test_login_stores_nothing_that_the_portal_refuses(world: World) -> None:
    refused = run(["login", PORTAL], io.StringIO("slp_wrong\n"))

    assert refused.code == 4
    assert "slp_wrong" not in refused.err
    assert not login.path().exists()
    assert run(["login", "portal.example"], io.StringIO("x\n")).code == 2
    assert run(["login", "https://me:secret@portal.example"], io.StringIO("x\n")).code == 2
    assert run(["login", PORTAL], io.StringIO("\n")).code == 2


def test_login_says_what_the_token_can_do_and_a_refusal_which_scope_it_lacks(
    world: World,
) -> None:
    made = tokens.create(actor=world.member, name="terminal", scopes=["upload"])
    limits = f"can read, upload, until {made.row.expires_at:%Y-%m-%d %H:%M} UTC"

    done = run(["login", PORTAL], io.StringIO(f"{made.plain}\n"))
    me = run(["whoami"])
    refused = run(["deploy", "vision/detector:1", "--instance-type", "g5.xlarge"])

    assert limits in done.out
    assert limits in me.out
    assert refused.code == 3
    assert "The token “terminal” lacks the scope request" in refused.err
    assert not ChangeRequest.objects.exists()


def test_login_links_to_the_page_with_the_scopes_ticked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: "")

    asked = run(["login", PORTAL, "--scopes", "upload, decide"], Terminal(""))
    wrong = run(["login", PORTAL, "--scopes", "admin"], Terminal(""))

    assert asked.err.startswith(f"Create a token at {PORTAL}/account/tokens?scopes=upload,decide\n")
    assert wrong.code == 2
    assert "Unknown scope 'admin'. Use read, upload, request, decide." in wrong.err
    assert not login.path().exists()


def test_the_environment_wins_and_a_stored_token_stays_with_its_portal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    login.save(login.Login("https://one.example", "slp_one"))

    monkeypatch.setenv("SLIPWAY_TOKEN", "slp_two")
    assert login.read() == login.Login("https://one.example", "slp_two")
    monkeypatch.delenv("SLIPWAY_TOKEN")
    monkeypatch.setenv("SLIPWAY_URL", "https://two.example")
    done = run(["whoami"])

    assert done.code == 4
    assert "No token for https://two.example" in done.err


def test_a_login_file_that_others_can_read_is_not_used() -> None:
    path = login.save(login.Login("https://one.example", "slp_one"))
    path.chmod(0o644)

    done = run(["whoami"])

    assert done.code == 4
    assert f"chmod 600 {path}" in done.err
    path.chmod(0o600)
    path.write_text("{")
    assert run(["whoami"]).code == 4
