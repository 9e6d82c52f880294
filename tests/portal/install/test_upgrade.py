"""Two versions of web at once on one database, as a rolling upgrade has them for some minutes.

The version before is the commit before the newest migration, or SLIPWAY_UPGRADE_FROM (a tag, before a release). While its
web answers, the migrations of this version run; then both webs answer in turns, with the same sessions and tokens.
Dependencies are those of this version. At the end the database is made as a fresh one is.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tests import plain_http
from tests.portal.install import web_process
from tests.portal.install.schema import schema_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    # Addresses that both versions know: the new one leads on to those below the team.
    "/",
    "/models",
    "/deployments",
    "/approvals",
    "/costs",
    "/fleet",
    "/audit",
    "/admin",
)
REST = ("models", "versions", "deployments", "changes", "clusters", "nodes", "me")
_MIGRATE_AND_SEED = """
import json
from django.core.management import call_command
from portal.accounts import tokens
from portal.accounts.models import Membership, Team, User
from portal.core import clock
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from portal.accounts.local.session_store import SessionStore

call_command("migrate", verbosity=0)
user = User.objects.create(username="lead")
team = Team.objects.create(slug="vision", name="Vision", created_at=clock.now(), monthly_budget_amount=1)
Membership.objects.create(user=user, team=team, role="lead")
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
token = tokens.create(actor=user, name="ci", days=1, scopes=["read", "upload"])
print(json.dumps({"session": session.session_key, "token": token.plain}))
"""

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="upgrades are of PostgreSQL"),
]


def version_before() -> str:
    wanted = os.environ.get("SLIPWAY_UPGRADE_FROM")
    # Of what was released one after the other: half-merged branches may have migrations that conflict.
    newest = _git("log", "--first-parent", "-1", "--format=%H", "--", "*/migrations/*.py")
    commit = wanted or (f"{newest}^" if newest else "")
    if not commit or not _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"):
        pytest.skip("the commit before the newest migration is not in this clone")
    return commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder, archive = tmp_path / "before", tmp_path / "before.tar"
    folder.mkdir()
    command = ["git", "-C", str(ROOT), "archive", "--output", str(archive), version_before()]
    subprocess.run(command, check=True)
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
    take_compiled_files(folder)
    return folder


def take_compiled_files(folder: Path) -> None:
    """What is the same in both versions need not be compiled again: that takes longer than the migrations."""
    for app in ("portal", "deployments", "fleet"):
        for old in (folder / app).rglob("*.py"):
            new = ROOT / old.relative_to(folder)
            compiled = Path(cache_from_source(str(new)))
            if not (new.exists() and compiled.exists()) or old.read_bytes() != new.read_bytes():
                continue
            shutil.copystat(new, old)
            target = Path(cache_from_source(str(old)))
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, target)


@contextmanager
def empty_database() -> Iterator[str]:
    """Its address for the portal."""
    server = connection.get_connection_params()
    name = f"upgraded_{uuid4().hex[:8]}"
    address = {"host": server["host"], "user": server["user"], "dbname": "postgres"}
    with psycopg.connect(**address, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"postgres://{server['user']}@/{name}?host={server['host']}"
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))


@dataclass
class Traffic:
    """Requests in turns to `webs`, as a load balancer sends them."""

    headers: dict[str, str]
    cookies: dict[str, str]
    webs: list[str]
    refused: list[str] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    sent: int = 0
    is_over: bool = False
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        turns = itertools.count()
        with httpx.Client(
            timeout=120, verify=False, cookies=self.cookies, follow_redirects=True
        ) as browser:
            while self.may_go_on.wait() and not self.is_over:
                try:
                    self.go_round(browser, turns)
                except httpx.HTTPError as error:
                    self.refused.append(repr(error))
                    return

    def go_round(self, browser: httpx.Client, turns: Iterator[int]) -> None:
        for path in PAGES:
            self._answer(browser.get(self._web(turns) + path))
        for path in REST:
            self._answer(
                plain_http.client.get(f"{self._web(turns)}/api/v1/{path}", **self._as_token)
            )
        number = len(self.written) + 1
        body = {"source_uri": f"hf://org/model:{number:040x}", "metadata": {"notes": "x"}}
        path = "/api/v1/models/vision/detector/references"
        made = plain_http.client.post(self._web(turns) + path, json=body, **self._as_token)
        if self._answer(made):
            self.written.append(made.json()["number"])
            # Through the other one, when there are two.
            path = f"/api/v1/models/vision/detector/versions/{self.written[-1]}"
            read = plain_http.client.get(self._web(turns) + path, **self._as_token)
            if self._answer(read) and read.json()["source_uri"] != body["source_uri"]:
                self.refused.append(f"version {self.written[-1]} is another one")

    @property
    def _as_token(self) -> dict[str, Any]:
        return {"headers": self.headers, "timeout": 120}

    def _web(self, turns: Iterator[int]) -> str:
        webs = list(self.webs)
        return webs[next(turns) % len(webs)]

    def _answer(self, response: httpx.Response) -> bool:
        self.sent += 1
        if response.status_code not in {200, 201}:
            self.refused.append(
                f"{response.status_code} {response.request.url}: {response.text[:300]}"
            )
        return response.is_success


def run_manage(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_rounds(traffic: Traffic, thread: threading.Thread, rounds: int) -> None:
    target, pause = len(traffic.written) + rounds, threading.Event()
    while len(traffic.written) < target and thread.is_alive() and not traffic.refused:
        pause.wait(0.1)


def test_old_and_new_web_answer_on_one_database(sources: Path, tmp_path: Path) -> None:
    with ExitStack() as parts:
        database = parts.enter_context(empty_database())
        environment = {**os.environ, "SLIPWAY_DATABASE_URL": database, "SLIPWAY_DEBUG": "0"}
        environment["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        shell = ("shell", "-v", "0", "-c", _MIGRATE_AND_SEED)
        seeded = json.loads(run_manage(sources, environment, *shell))
        old = web_process.start(parts, sources, environment, tmp_path / "old.log")
        traffic = Traffic(
            {"Authorization": f"Bearer {seeded['token']}"}, {"sessionid": seeded["session"]}, [old]
        )
        thread = threading.Thread(target=traffic.run)
        thread.start()
        traffic.may_go_on.set()
        try:
            wait_for_rounds(traffic, thread, 2)
            before = len(traffic.written)
            run_manage(ROOT, environment, "migrate", "--verbosity", "0")
            wait_for_rounds(traffic, thread, 2)
            migrated = len(traffic.written)
            traffic.may_go_on.clear()
            traffic.webs.append(web_process.start(parts, ROOT, environment, tmp_path / "new.log"))
            traffic.may_go_on.set()
            wait_for_rounds(traffic, thread, 4)
        finally:
            traffic.is_over = True
            traffic.may_go_on.set()
            thread.join()
        traffic.webs.remove(old)
        with httpx.Client(
            timeout=120, verify=False, cookies=traffic.cookies, follow_redirects=True
        ) as browser:
            traffic.go_round(browser, itertools.count())
        server = connection.get_connection_params()
        address = {name: server[name] for name in ("host", "user", "dbname")}
        with psycopg.connect(database) as upgraded, psycopg.connect(**address) as fresh:
            schemas = schema_of(upgraded), schema_of(fresh)

    assert traffic.refused == []
    assert before >= 2
    assert migrated >= before + 2
    # Numbers are given by both webs, none twice and none left out.
    assert traffic.written == list(range(1, len(traffic.written) + 1))
    assert len(traffic.written) >= migrated + 5
    assert schemas[0] ^ schemas[1] == set()
    assert len(schemas[1]) > 1000
