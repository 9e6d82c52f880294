"""Actions that the portal's own AWS role must not be able to perform on the bucket, simulated by IAM."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from deployments.registry.gateways.object_store_errors import translate_errors
from portal.core import network_failures

_TIMEOUTS: Final = Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 2})
_ALLOWED: Final = "allowed"
# Each undoes what protects approved files or the audit trail.
TOO_MUCH: Final = (
    "s3:BypassGovernanceRetention",
    "s3:DeleteBucket",
    "s3:DeleteBucketPolicy",
    "s3:PutBucketAcl",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketPolicy",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketVersioning",
    "s3:PutLifecycleConfiguration",
)


class NotSimulated(Exception):
    """An error of the simulation: IAM or STS did not answer, or refused; the message says which."""


def excess(bucket: str) -> list[str]:
    """Return the actions of TOO_MUCH that the role is allowed on the bucket. Raises NotSimulated."""
    try:
        role = _own_role()
        response = _iam().simulate_principal_policy(
            PolicySourceArn=role,
            ActionNames=list(TOO_MUCH),
            ResourceArns=[f"arn:{role.split(':')[1]}:s3:::{bucket}"],
        )
    except (BotoCoreError, ClientError) as error:
        raise NotSimulated(network_failures.describe(error)) from error
    results = response["EvaluationResults"]
    return sorted(row["EvalActionName"] for row in results if row["EvalDecision"] == _ALLOWED)


def encryption(client: Any, bucket: str) -> str:
    """Return the algorithm that new objects are encrypted with. Empty means none by default."""
    with translate_errors(bucket):
        answer = client.get_bucket_encryption(Bucket=bucket)
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    return next((_algorithm(rule) for rule in rules if _algorithm(rule)), "")


def _algorithm(rule: dict[str, Any]) -> str:
    return str(rule.get("ApplyServerSideEncryptionByDefault", {}).get("SSEAlgorithm", ""))


def _own_role() -> str:
    """Return the portal's role: arn:aws:sts::1:assumed-role/NAME/SESSION is a session of
    arn:aws:iam::1:role/NAME.
    """
    arn = str(_sts().get_caller_identity()["Arn"])
    if ":assumed-role/" not in arn:
        return arn
    start, _, rest = arn.partition(":assumed-role/")
    return f"{start.replace(':sts:', ':iam:')}:role/{rest.split('/')[0]}"


@lru_cache(maxsize=1)
def _iam() -> Any:
    return boto3.client("iam", config=_TIMEOUTS)


@lru_cache(maxsize=1)
def _sts() -> Any:
    return boto3.client("sts", config=_TIMEOUTS)
