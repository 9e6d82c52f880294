"""A pod's credentials of AWS and signatures with them (Signature Version 4): a part of the program of queue workers.

In this order, as the SDKs of AWS do: keys of the environment, the role of the service account by its web identity token
(IRSA), EKS Pod Identity.
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import http.client
import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from deployments.batch.domain.worker_store import NEVER, Ended, Json

CREDENTIAL_SECONDS = 30
# Renewed so long before they end.
RENEW_SECONDS = 300
NO_CREDENTIALS = (
    "the pod has no credentials of AWS: give the role of the team's models access to the queue, or name a Secret "
    "with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)


class Credentials:
    """The keys for one region, renewed when they are about to end."""

    def __init__(self, region: str) -> None:
        self.region, self.lock = region, threading.Lock()
        self.keys: Any = None
        self.until = 0.0

    def current(self) -> Any:
        """Return the key id, secret key and session token, which may be empty."""
        with self.lock:
            if self.keys is None or time.time() > self.until - RENEW_SECONDS:
                self.keys, self.until = self.fetch()
            return self.keys

    def forget(self) -> None:
        self.keys = None

    def fetch(self) -> Any:
        env = os.environ
        if env.get("AWS_ACCESS_KEY_ID"):
            token = env.get("AWS_SESSION_TOKEN", "")
            return (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], token), float("inf")
        if env.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
            return self.of_web_identity()
        if env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
            return self.of_container()
        raise Ended(NEVER, NO_CREDENTIALS)

    def of_web_identity(self) -> Any:
        suffix = ".cn" if self.region.startswith("cn-") else ""
        host = f"https://sts.{self.region}.amazonaws.com{suffix}"
        query = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": os.environ["AWS_ROLE_ARN"],
            "RoleSessionName": os.environ.get("AWS_ROLE_SESSION_NAME", "slipway-batch"),
            "WebIdentityToken": Path(os.environ["AWS_WEB_IDENTITY_TOKEN_FILE"]).read_text(),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        address = os.environ.get("AWS_ENDPOINT_URL_STS", host)
        text = exchanged("POST", address, urlencode(query).encode(), headers).decode()
        found = {
            name: found_in(text, name)
            for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        }
        return keys_of(found, found["SessionToken"])

    def of_container(self) -> Any:
        address = os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
        file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        headers = {"Authorization": Path(file).read_text().strip()} if file else {}
        credentials = json.loads(exchanged("GET", address, b"", headers))
        return keys_of(credentials, credentials["Token"])


def keys_of(found: Json, token: str) -> Any:
    ends = time.strptime(found["Expiration"][:19], "%Y-%m-%dT%H:%M:%S")
    return (found["AccessKeyId"], found["SecretAccessKey"], token), float(calendar.timegm(ends))


def found_in(text: str, name: str) -> str:
    match = re.search(f"<{name}>([^<]*)</{name}>", text)
    if match is None:
        raise Ended(1, f"AWS gave no {name} for the role of the pod")
    return match[1]


def exchanged(method: str, address: str, body: bytes, headers: Json) -> bytes:
    where = urlsplit(address)
    kind: Any = (
        http.client.HTTPConnection if where.scheme == "http" else http.client.HTTPSConnection
    )
    connection = kind(where.netloc, timeout=CREDENTIAL_SECONDS)
    try:
        connection.request(method, where.path or "/", body, headers)
        response = connection.getresponse()
        content: bytes = response.read()
    finally:
        connection.close()
    if response.status != 200:
        detail = content[:300].decode(errors="replace")
        raise Ended(1, f"AWS gives the pod no credentials: HTTP {response.status} {detail}")
    return content


def signed(
    keys: Any, region: str, service: str, host: str, body: bytes, headers: Json, now: float
) -> Json:
    """Return the headers of a signed POST of the root path. `now` is in seconds of the epoch."""
    key_id, secret, token = keys
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    named = {**headers, "Host": host, "X-Amz-Date": at}
    if token:
        named["X-Amz-Security-Token"] = token
    lower = {name.lower(): value.strip() for name, value in named.items()}
    names = ";".join(sorted(lower))
    listed = "".join(f"{name}:{lower[name]}\n" for name in sorted(lower))
    canonical = f"POST\n/\n\n{listed}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}"
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    value = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**named, "Authorization": value}
