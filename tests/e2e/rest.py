"""The journey by REST, as a notebook would do it: plain HTTP with a personal token."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import httpx

from tests import plain_http
from tests.e2e.demo_process import DemoProcess
from tests.waiting import wait_for

INSTANCE_TYPE = "g4dn.12xlarge"


class Person:
    """A person with a token. Every refused request fails the test with the problem's detail."""

    def __init__(self, demo: DemoProcess, name: str, *, keeps_connection: bool = False) -> None:
        self.name = name
        self.token = _make_token(demo.url, name, demo.password(name))
        self.http = httpx.Client(
            base_url=f"{demo.url}/api/v1/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=120,
            # A kept connection would fail once its server was killed on purpose.
            limits=httpx.Limits(max_keepalive_connections=int(keeps_connection)),
        )

    def get(self, path: str) -> Any:
        return self._read(self.http.get(path))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._read(self.http.post(path, json=body or {}))

    def try_get(self, path: str) -> Any | None:
        """None while the portal cannot answer, for polling while parts are being killed."""
        try:
            answer = self.http.get(path)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    @staticmethod
    def _read(answer: httpx.Response) -> Any:
        assert answer.is_success, f"{answer.request.method} {answer.url}: {answer.text}"
        return answer.json()

    def upload(self, model: str, file: Path, **metadata: Any) -> dict[str, Any]:
        """Upload as a new version of vision's model and wait until it is ready."""
        version = self.send(model, file, **metadata)
        return self.wait_for_version(version["id"])

    def send(self, model: str, file: Path, **metadata: Any) -> dict[str, Any]:
        content = file.read_bytes()
        started = self.post(
            f"models/vision/{model}/versions",
            {
                "files": [
                    {
                        "path": file.name,
                        "size_bytes": len(content),
                        "sha256": hashlib.sha256(content).hexdigest(),
                    }
                ],
                "metadata": metadata,
                "allow_duplicate": True,
            },
        )
        plan = started["files"][0]
        numbers = list(range(1, plan["part_count"] + 1))
        signed = self.post(f"versions/{started['id']}/parts", {"numbers": numbers})
        for part in signed:
            first = (part["number"] - 1) * plan["part_size"]
            body = content[first : first + part["size_bytes"]]
            plain_http.client.put(
                part["url"], content=body, headers=part["headers"]
            ).raise_for_status()
        completed: dict[str, Any] = self.post(f"versions/{started['id']}/complete")
        return completed

    def wait_for_version(self, version_id: int) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            version = self.try_get(f"versions/{version_id}")
            if version is None or version["state"] in {"uploading", "verifying"}:
                return None
            assert version["state"] == "ready", version["state_reason"]
            return dict(version)

        return wait_for("ready version", ended)

    def request_deployment(
        self,
        version: dict[str, Any],
        name: str,
        *,
        engine: str = "kserve-triton",
        instance_type: str = INSTANCE_TYPE,
        **settings: Any,
    ) -> dict[str, Any]:
        spec = {
            "engine": engine,
            "instance_type": instance_type,
            "memory": "2Gi",
            "network": {"access": "open"},
            **settings,
        }
        body = {
            "version_id": version["id"],
            "cluster_id": 1,
            "name": name,
            "spec": spec,
            "comment": "end-to-end test",
        }
        return dict(self.post("deployments", body))

    def approve(self, change: dict[str, Any]) -> dict[str, Any]:
        shown = self.get(f"changes/{change['id']}")
        body = {"evidence_hash": shown["evidence_hash"], "comment": "tried"}
        return dict(self.post(f"changes/{change['id']}/approve", body))

    def wait_until_ready(self, deployment_id: int) -> dict[str, Any]:
        def is_ready() -> dict[str, Any] | None:
            deployment = self.try_get(f"deployments/{deployment_id}")
            return deployment if deployment and deployment["state"] == "ready" else None

        return wait_for("ready deployment", is_ready)

    def deployment_named(self, name: str) -> dict[str, Any]:
        rows = self.get("deployments?team=vision")["results"]
        return next(row for row in rows if row["name"] == name)

    def retire(self, deployment_id: int, *, approved_by: Person) -> None:
        """Give its GPUs back, so that the next test finds some."""
        body = {"kind": "retire"}
        approved_by.approve(self.post(f"deployments/{deployment_id}/changes", body))

        def is_retired() -> bool:
            deployment = self.try_get(f"deployments/{deployment_id}")
            return deployment is not None and deployment["state"] == "retired"

        wait_for("end of the deployment", is_retired)


class Classifier:
    """Asks the deployed model what kind of file some bytes are, with plain HTTP."""

    def __init__(self, demo: DemoProcess, url: str, model: str) -> None:
        self.url = f"{url}/v2/models/{model}/infer"
        self._config = json.loads((demo.samples / "filetype.json").read_text())

    def kind_of(self, content: bytes) -> str:
        answer = self.send(content)
        answer.raise_for_status()
        scores = answer.json()["outputs"][0]["data"]
        return self.labels[scores.index(max(scores))]

    @property
    def labels(self) -> list[str]:
        return list(self._config["target_labels_space"])

    def send(self, content: bytes) -> httpx.Response:
        tensor = {"name": "bytes", "datatype": "INT32", "shape": [1, 2048]}
        body = {"inputs": [{**tensor, "data": self.features(content)}]}
        return plain_http.client.post(self.url, json=body)

    def features(self, content: bytes) -> list[int]:
        config = self._config
        block = config["block_size"]
        begin = list(content[:block].lstrip()[: config["beg_size"]])
        end = list(content[-block:].rstrip()[-config["end_size"] :])
        pad = config["padding_token"]
        begin += [pad] * (config["beg_size"] - len(begin))
        return begin + [pad] * (config["end_size"] - len(end)) + end


def _make_token(url: str, name: str, password: str) -> str:
    """Signs in as the page does, and makes a token as the page's script would."""
    with httpx.Client(base_url=url, follow_redirects=True, timeout=120) as browser:
        page = browser.get("/sign-in")
        match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert match
        form = {"csrfmiddlewaretoken": match[1], "username": name, "password": password}
        browser.post("/sign-in", data=form).raise_for_status()
        headers = {"X-CSRFToken": browser.cookies["csrftoken"]}
        scopes = ["upload", "request", "decide"]
        body = {"name": "end-to-end test", "days": 1, "scopes": scopes}
        answer = browser.post("/api/v1/me/tokens", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])
