"""Whether an AWS role may read a prefix of the bucket, as IAM itself says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_TIMEOUTS: Final = Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 2})
_ALLOWED: Final = "allowed"
_MISSING: Final = ("NoSuchEntity", "NoSuchEntityException")


@dataclass(frozen=True, slots=True)
class RoleAccess:
    """`ok` None is not known; `words` say what IAM said, or why it was not asked."""

    ok: bool | None
    words: str


def may_read(*, role_arn: str, bucket: str, prefix: str) -> RoleAccess:
    """Asks for what a download does: list the prefix, and get what lies there. Only the role's own
    policies are looked at, not the bucket's.
    """
    partition = role_arn.split(":")[1]
    bucket_arn = f"arn:{partition}:s3:::{bucket}"
    wanted = (("s3:GetObject", f"{bucket_arn}/{prefix}*"), ("s3:ListBucket", bucket_arn))
    try:
        client = _client()
        refused = [
            action for action, arn in wanted if not _is_allowed(client, role_arn, action, arn)
        ]
    except ClientError as error:
        return _from_error(role_arn, error)
    except BotoCoreError as error:
        return RoleAccess(None, f"IAM did not answer: {error}")
    if refused:
        return RoleAccess(ok=False, words=f"{role_arn} is not allowed {' and '.join(refused)}.")
    return RoleAccess(ok=True, words=f"{role_arn} may list and get it.")


def _client() -> Any:
    return boto3.client("iam", config=_TIMEOUTS)


def _is_allowed(client: Any, role_arn: str, action: str, resource_arn: str) -> bool:
    answer = client.simulate_principal_policy(
        PolicySourceArn=role_arn, ActionNames=[action], ResourceArns=[resource_arn]
    )
    return all(one["EvalDecision"] == _ALLOWED for one in answer["EvaluationResults"])


def _from_error(role_arn: str, error: ClientError) -> RoleAccess:
    code = error.response.get("Error", {}).get("Code", "")
    if code in _MISSING:
        return RoleAccess(ok=False, words=f"There is no role {role_arn}.")
    words = f"IAM was not asked ({code}): the portal's role lacks iam:SimulatePrincipalPolicy."
    return RoleAccess(None, words)
