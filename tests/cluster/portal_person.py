"""A person of the company at an installed portal: signs in with its OpenID Connect provider, uses pages and REST."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests import plain_http
from tests.cluster.installed_portal import HOST, InstalledPortal
from tests.portal.accounts.oidc.conftest import Server
from tests.waiting import wait_for


class Person:
    def __init__(self, portal: InstalledPortal, provider: Server, subject: str) -> None:
        self._portal, self._provider, self._subject = portal, provider, subject
        self.browser = httpx.Client(
            base_url=portal.url,
            headers={"Host": HOST, "Referer": f"https://{HOST}/"},
            verify=portal.trust,
            timeout=120,
        )

    def sign_in(self) -> None:
        self._with_provider("/sign-in/with/lab")

    def confirm(self) -> None:
        """Sign in once more at the provider, as before a decision."""
        self._with_provider("/sign-in/with/lab?confirm=1&next=/approvals")

    def _with_provider(self, path: str) -> None:
        start = self.browser.get(path)
        assert start.status_code == httpx.codes.FOUND, start.text
        back = urlsplit(self._provider.consent(start.headers["location"], self._subject))
        assert back.netloc == HOST
        answer = self.browser.get(f"{back.path}?{back.query}")
        assert answer.status_code == httpx.codes.FOUND, answer.text

    def get(self, path: str) -> Any:
        return self._read(self.browser.get(f"/api/v1/{path}"))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._read(self.try_post(path, body))

    def try_post(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """With the token against forged requests that a page has."""
        page = self.browser.get("/account/tokens").text
        token = re.search(r'"X-CSRFToken": "(\w+)"', page)
        assert token, self._portal.logs()
        headers = {"X-CSRFToken": token[1]}
        return self.browser.post(f"/api/v1/{path}", json=body or {}, headers=headers)

    def _read(self, answer: httpx.Response) -> Any:
        asked = f"{answer.request.method} {answer.url}"
        assert answer.is_success, f"{asked}: {answer.text}\n{self._portal.logs()}"
        return answer.json()

    def upload(self, model: str, body: bytes) -> dict[str, Any]:
        """A version, once it is ready."""
        digest = hashlib.sha256(body).hexdigest()
        file = {"path": "model.onnx", "size_bytes": len(body), "sha256": digest}
        started = self.post(f"models/{model}/versions", {"files": [file]})
        (part,) = self.post(f"versions/{started['id']}/parts", {"numbers": [1]})
        sent = plain_http.client.put(part["url"], content=body, headers=part["headers"])
        sent.raise_for_status()
        self.post(f"versions/{started['id']}/complete")

        def ended() -> dict[str, Any] | None:
            version = dict(self.get(f"versions/{started['id']}"))
            return None if version["state"] in {"uploading", "verifying"} else version

        version = wait_for("verdict on the upload", ended)
        assert version["state"] == "ready", version["state_reason"]
        return version
