"""The client: one portal, one token."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from slipway_client import inference, login
from slipway_client.connection import Connection, RetryPolicy
from slipway_client.errors import Failed
from slipway_client.resources.account import Account
from slipway_client.resources.alerts import Alerts
from slipway_client.resources.batch import BatchJobs
from slipway_client.resources.changes import Changes
from slipway_client.resources.costs import CostsResource
from slipway_client.resources.deployments import Deployments
from slipway_client.resources.fleet import Fleet
from slipway_client.resources.imports import Imports
from slipway_client.resources.models import Models
from slipway_client.resources.names import parse_model
from slipway_client.resources.rollouts import Rollouts
from slipway_client.resources.versions import Versions
from slipway_client.types import Cluster, Deployment, Me, Tensor, Version
from slipway_client.uploads.progress import Progress, Silent
from slipway_client.uploads.push import PATIENT, Push, UploadOptions


class Client:
    """Everything that the portal does for people, with the rights of the token's owner.

    Without arguments, address and token come from SLIPWAY_URL and SLIPWAY_TOKEN, or from what
    `slipway login` stored.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
        store_transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect to a portal. `timeout` is in seconds, of each attempt. The transports replace the network to the
        portal and to the object store, for proxies and tests.
        """
        known = login.read(url, token)
        self.url = known.url
        self._store_transport = store_transport
        self._retry = retry
        self._connection = Connection(
            known.url, known.token, timeout=timeout, retry=retry, transport=transport
        )
        self.account = Account(self._connection)
        self.models = Models(self._connection)
        self.versions = Versions(self._connection)
        self.imports = Imports(self._connection)
        self.deployments = Deployments(self._connection)
        self.changes = Changes(self._connection)
        self.rollouts = Rollouts(self._connection)
        self.costs = CostsResource(self._connection)
        self.alerts = Alerts(self._connection)
        self.fleet = Fleet(self._connection)
        self.batch_jobs = BatchJobs(self._connection, retry=retry, store_transport=store_transport)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def me(self) -> Me:
        """Return the owner of the token. The cheapest way to try address and token."""
        return self.account.me()

    def clusters(self) -> list[Cluster]:
        return self.account.clusters()

    def push(
        self,
        path: str | Path,
        model: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        fields: Mapping[str, Any] | None = None,
        allow_duplicate: bool = False,
        parallel: int = 4,
        wait: bool = True,
        seconds: float = 1800.0,
        progress: Progress | None = None,
    ) -> Version:
        """Upload a file or a folder as a new version of team/model, and wait until it is verified.

        An upload of the same files that was interrupted is continued. Files that are a version
        already are not sent again; that version is returned. `fields` are further fields of the
        request, such as `declared`. Raises Failed, with the reason, when the version is not ready.
        """
        name = str(parse_model(model))
        given = {**({"metadata": dict(metadata)} if metadata else {}), **(fields or {})}
        options = UploadOptions(
            fields=given,
            is_duplicate_allowed=allow_duplicate,
            parallel=parallel,
            retry=self._retry or PATIENT,
            transport=self._store_transport,
        )
        report = progress or Silent()
        with self._connection.with_retry(options.retry):
            version = Push(self._connection, Path(path), name, options, report).run()
            if not wait:
                return self.versions.get(version)
            return self.versions.wait(version, seconds=seconds, on_change=report.verifying)

    def call(
        self,
        deployment: Deployment | int | str,
        inputs: dict[str, Any],
        *,
        key: str | None = None,
        timeout: float = 60.0,
    ) -> dict[str, Any]:
        """Send one inference request to the deployment's address, by the v2 protocol.

        `inputs` are numpy arrays or nested lists by name; types come from the signature of the stable revision. The
        outputs are numpy arrays if numpy is installed. `key` is the caller's; without one it is read from
        SLIPWAY_CALLER_KEY.
        """
        target = (
            deployment if isinstance(deployment, Deployment) else self.deployments.get(deployment)
        )
        stable = target.desired.stable
        if stable is None:
            raise Failed(f"{target} has no serving revision yet: it is {target.state}.")
        version = self.versions.get(stable.version_id)
        tensors: tuple[Tensor, ...] = version.signature.inputs if version.signature else ()
        return inference.infer(
            target.url,
            version.model,
            inputs,
            tensors=tensors,
            key=os.environ.get(inference.KEY_VARIABLE, "") if key is None else key,
            timeout=timeout,
        )
