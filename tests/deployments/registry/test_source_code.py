"""Code of a version can be read on its page before its release, and is shown as text only."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from deployments.models import ModelVersion
from deployments.states import VersionState
from portal.accounts.models import User
from tests.deployments.uploading import People, Upload
from tests.fixtures import triton_repositories as repositories
from tests.page import page

pytestmark = pytest.mark.django_db

SOURCE = b"class TritonPythonModel:\n\tdef execute(self, requests):\n        pass  # <script>\x1b[31m\xff\n"
CONFIG = repositories.CENTER_CONFIG.replace(b"onnxruntime", b"python")


@pytest.fixture
def version(verified: Upload) -> ModelVersion:
    files = {"config.pbtxt": CONFIG, "1/model.py": SOURCE, "1/part.py": b"x = 1\n" * 60_000}
    stored = verified(files, model="rows")
    assert stored.state == VersionState.QUARANTINED
    return stored


def get(actor: User, version: ModelVersion, name: str, query: dict[str, str] | None = None) -> Any:
    client = Client()
    client.force_login(actor)
    address = reverse(name, args=[version.team.slug, version.model.name, version.number])
    return client.get(address, query or {})


def test_the_admin_reads_the_code_before_the_release(people: People, version: ModelVersion) -> None:
    text = page(get(people.admin, version, "version")).text
    assert "Read the code (2 files) before you release it." in text

    response = get(people.admin, version, "version-code")
    code = page(response).text
    assert "None of it was run." in code
    assert "class TritonPythonModel: def execute(self, requests):" in code
    assert "pass # <script>�[31m�" in code
    assert b"<script>\xef" not in response.content

    part = page(get(people.admin, version, "version-code", {"path": "1/part.py"})).text
    assert part.count("x = 1") == 256 * 1024 // 6
    assert "are not shown" in part


def test_only_files_of_code_are_shown_and_only_to_those_who_may(
    people: People, version: ModelVersion
) -> None:
    for path in ("config.pbtxt", "1/none.py", "../model.py"):
        response = get(people.admin, version, "version-code", {"path": path})
        assert response.status_code == 404, path
    for actor, status in ((people.member, 200), (people.viewer, 403), (people.stranger, 404)):
        assert get(actor, version, "version-code").status_code == status
    assert "Read the code" not in page(get(people.viewer, version, "version")).text


def test_an_own_configuration_is_not_called_generated(people: People, verified: Upload) -> None:
    own = verified(
        {"config.pbtxt": repositories.CENTER_CONFIG, "1/model.onnx": repositories.center()},
        model="rows",
    )
    assert own.state == VersionState.READY

    assert "config.pbtxt uploaded" in page(get(people.member, own, "version")).text
