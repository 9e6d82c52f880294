"""A Git server, with the portal's token in its folder of credentials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from tests.deployments.git_server import TOKEN, GitServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path) as found:
        (tmp_path / "tokens").mkdir()
        (tmp_path / "tokens" / "fleet-repo").write_text(f"{TOKEN}\n")
        with override_settings(SLIPWAY_GIT_CREDENTIALS_DIR=str(tmp_path / "tokens")):
            yield found
