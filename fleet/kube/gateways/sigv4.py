"""Requests to AWS services that Slipway speaks to itself, signed with Signature Version 4."""

from __future__ import annotations

import threading
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any, Final

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from fleet.kube.gateways import eks
from portal.core import clock, network_failures

# A role is assumed for an hour; long before its end it is assumed anew.
_SESSION_LIFE: Final = timedelta(minutes=30)
_SIGNED: Final = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")


class SigningFailed(Exception):
    """There are no credentials; the message says why, and contains none."""


class SignedRequests(httpx.Auth):
    """Signs each request as it is sent: address, body and type of the body. For a short while: the
    credentials are those of its making. Raises SigningFailed where there are none.
    """

    requires_request_body = True

    def __init__(self, *, service: str, region: str, role_arn: str) -> None:
        self._service, self._region = service, region
        try:
            self._credentials = _credentials(region, role_arn)
        except eks.EksUnavailable as error:
            # Its message is the portal's own.
            raise SigningFailed(f"signing for {service} failed: {error}") from error
        except (BotoCoreError, ClientError) as error:
            reason = network_failures.describe(error)
            raise SigningFailed(f"signing for {service} failed: {reason}") from error

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        kind = request.headers.get("Content-Type", "")
        signed = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={"Content-Type": kind} if kind else {},
        )
        SigV4Auth(self._credentials, self._service, self._region).add_auth(signed)
        for name in _SIGNED:
            if name in signed.headers:
                request.headers[name] = signed.headers[name]
        yield request


_sessions: dict[tuple[str, str], tuple[datetime, Any]] = {}
_lock = threading.Lock()


def _credentials(region: str, role_arn: str) -> Any:
    """No lock is held during the call to AWS: two at once assume the role twice, which is harmless."""
    key, at = (region, role_arn), clock.now()
    with _lock:
        made_at, session = _sessions.get(key, (at - _SESSION_LIFE, None))
    if session is None or at - made_at >= _SESSION_LIFE:
        session = eks.session_for(region, role_arn)
        with _lock:
            _sessions[key] = (at, session)
    credentials = session.get_credentials()
    if credentials is None:
        raise eks.EksUnavailable("the portal has no AWS credentials")
    return credentials.get_frozen_credentials()
