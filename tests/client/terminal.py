"""The command `slipway` as a test runs it, on the real application in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from portal.accounts import tokens
from portal.accounts.models import User
from portal.accounts.scopes import Scope
from slipway_client import Client
from slipway_client.cli.context import Context
from slipway_client.cli.main import main
from tests.client.conftest import AT_ONCE, PORTAL, portal_transport


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def connect(url: str | None = None, token: str | None = None) -> Client:
    return Client(url, token, transport=portal_transport(), retry=AT_ONCE)


def run(arguments: Sequence[str], stdin: io.StringIO | None = None, **fields: Any) -> Done:
    out, err = io.StringIO(), io.StringIO()

    def make_context(*, is_json: bool) -> Context:
        return Context(
            is_json=is_json,
            connect=connect,
            out=out,
            err=err,
            stdin=stdin or io.StringIO(),
            sleep=lambda _: None,
            **fields,
        )

    code = main(arguments, make_context)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture
def sign_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[User], str]:
    def use(user: User) -> str:
        token = tokens.create(actor=user, name="terminal", scopes=list(Scope)).plain
        monkeypatch.setenv("SLIPWAY_URL", PORTAL)
        monkeypatch.setenv("SLIPWAY_TOKEN", token)
        return token

    return use
