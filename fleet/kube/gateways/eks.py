"""Amazon EKS: where a cluster's API is, and short-lived tokens from the portal's own AWS role."""

from __future__ import annotations

import base64
import binascii
import tempfile
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.signers import RequestSigner

from portal.core import clock, network_failures

# EKS accepts a token for 15 minutes from its X-Amz-Date, whatever its own expiry says.
TOKEN_LIFE = timedelta(minutes=14)
# One that was refused sooner than this is not refused for its age.
_FRESH = timedelta(seconds=10)
_TIMEOUTS = Config(connect_timeout=3, read_timeout=10, retries={"max_attempts": 2})


class EksUnavailable(Exception):
    """AWS refused or did not answer; the message says which call."""


@dataclass(frozen=True, slots=True)
class EksCluster:
    endpoint: str
    ca_file: str
    version: str


def session_for(region: str, role_arn: str) -> Any:
    """Return the portal's own AWS session, or one of the role that it assumes, for an hour at most."""
    own = boto3.session.Session(region_name=region)
    if not role_arn:
        return own
    try:
        sts = own.client("sts", region_name=region, config=_TIMEOUTS)
        given = sts.assume_role(RoleArn=role_arn, RoleSessionName="slipway")["Credentials"]
    except (BotoCoreError, ClientError, KeyError) as error:
        raise EksUnavailable(
            f"sts:AssumeRole {role_arn} failed: {network_failures.describe(error)}"
        ) from error
    return boto3.session.Session(
        given["AccessKeyId"],
        given["SecretAccessKey"],
        given["SessionToken"],
        region_name=region,
    )


def describe(name: str, region: str, role_arn: str = "") -> EksCluster:
    try:
        client = session_for(region, role_arn).client("eks", region_name=region, config=_TIMEOUTS)
        cluster = client.describe_cluster(name=name)["cluster"]
        certificate = base64.b64decode(cluster["certificateAuthority"]["data"])
    except (BotoCoreError, ClientError, KeyError, binascii.Error) as error:
        raise EksUnavailable(
            f"eks:DescribeCluster {name} in {region} failed: {network_failures.describe(error)}"
        ) from error
    with tempfile.NamedTemporaryFile(prefix="slipway-eks-ca-", suffix=".pem", delete=False) as ca:
        ca.write(certificate)
    return EksCluster(cluster["endpoint"], str(Path(ca.name)), str(cluster.get("version", "")))


class TokenCache:
    """A bearer token for one cluster, renewed shortly before EKS stops accepting it. The role
    is assumed again for each: its session outlives the token that it signed.
    """

    def __init__(self, name: str, region: str, session: Any = None, role_arn: str = "") -> None:
        self._name = name
        self._region = region
        self._session = session
        self._role_arn = role_arn
        self._lock = threading.Lock()
        self._token = ""
        self._made_at: datetime | None = None

    def get(self) -> str:
        with self._lock:
            at = clock.now()
            if self._made_at is None or at >= self._made_at + TOKEN_LIFE:
                self._token = self._make()
                self._made_at = at
            return self._token

    def forget(self, refused: str) -> bool:
        """The API server took the token for expired: it ends with the AWS credentials that signed
        it, when those end first. Returns whether the next one may fare better.
        """
        with self._lock:
            if refused != self._token:
                return True
            if self._made_at is not None and clock.now() - self._made_at < _FRESH:
                return False
            self._made_at = None
            return True

    def _make(self) -> str:
        try:
            session = self._session or session_for(self._region, self._role_arn)
            credentials = session.get_credentials()
            if credentials is None:
                raise EksUnavailable("the portal has no AWS credentials")
            sts = session.client("sts", region_name=self._region)
            signer = RequestSigner(
                sts.meta.service_model.service_id,
                self._region,
                "sts",
                "v4",
                credentials,
                session.events,
            )
            url = signer.generate_presigned_url(
                {
                    "method": "GET",
                    "url": f"https://sts.{self._region}.amazonaws.com/"
                    "?Action=GetCallerIdentity&Version=2011-06-15",
                    "body": {},
                    # The cluster's name must be signed, or the token would open any cluster.
                    "headers": {"x-k8s-aws-id": self._name},
                    "context": {},
                },
                region_name=self._region,
                expires_in=60,
                operation_name="",
            )
        except (BotoCoreError, ClientError) as error:
            raise EksUnavailable(
                f"signing an STS token failed: {network_failures.describe(error)}"
            ) from error
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
