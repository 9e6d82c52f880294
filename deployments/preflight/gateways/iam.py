"""Ask IAM what an AWS role can read in the bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from portal.core import network_failures

_TIMEOUTS: Final = Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 2})
_ALLOWED: Final = "allowed"
_MISSING: Final = ("NoSuchEntity", "NoSuchEntityException")
_GET: Final = "s3:GetObject"
_LIST: Final = "s3:ListBucket"
_PREFIX_KEY: Final = "s3:prefix"
# Represents any object under a prefix.
_SOME_OBJECT: Final = "slipway-access-check"


@dataclass(frozen=True, slots=True)
class RoleAccess:
    """The simulated access of a role to a bucket. `ok` None means unknown. `message` is the result, or why it
    could not be simulated. `is_too_wide`: the role can read another team's objects.
    """

    ok: bool | None
    message: str
    is_too_wide: bool = False


def may_read_only(*, role_arn: str, bucket: str, prefix: str, others: Sequence[str]) -> RoleAccess:
    """Whether the role can list and get `prefix`, and none of the prefixes `others`.

    Only the policies of the role are evaluated, not the bucket policy.
    """
    try:
        return _Role(_client(), role_arn, bucket).access(prefix, others)
    except ClientError as error:
        return _from_error(role_arn, error)
    except BotoCoreError as error:
        return RoleAccess(None, f"IAM did not respond: {network_failures.describe(error)}")


class _Role:
    def __init__(self, client: Any, role_arn: str, bucket: str) -> None:
        self._client = client
        self._role_arn = role_arn
        self._bucket_arn = f"arn:{role_arn.split(':')[1]}:s3:::{bucket}"

    def access(self, prefix: str, others: Sequence[str]) -> RoleAccess:
        refused = self._allowed(prefix) ^ {_GET, _LIST}
        if refused:
            message = (
                f"{self._role_arn} is not allowed {' and '.join(sorted(refused))} on {prefix}."
            )
            return RoleAccess(ok=False, message=message)
        for other in others:
            allowed = self._allowed(other)
            if allowed:
                message = (
                    f"{self._role_arn} is allowed {' and '.join(sorted(allowed))} on {other}, "
                    "which belongs to another team."
                )
                return RoleAccess(ok=False, message=message, is_too_wide=True)
        message = (
            f"{self._role_arn} can list and get objects in {prefix} and nothing of other teams."
        )
        return RoleAccess(ok=True, message=message)

    def _allowed(self, prefix: str) -> set[str]:
        requests = ((_GET, f"{self._bucket_arn}/{prefix}{_SOME_OBJECT}"), (_LIST, self._bucket_arn))
        return {action for action, arn in requests if self._is_allowed(action, arn, prefix)}

    def _is_allowed(self, action: str, resource_arn: str, prefix: str) -> bool:
        """Simulate one action. ListBucket is restricted by its prefix parameter, which is not part of the
        resource.
        """
        context = {
            "ContextKeyName": _PREFIX_KEY,
            "ContextKeyValues": [prefix],
            "ContextKeyType": "string",
        }
        response = self._client.simulate_principal_policy(
            PolicySourceArn=self._role_arn,
            ActionNames=[action],
            ResourceArns=[resource_arn],
            ContextEntries=[context],
        )
        return all(result["EvalDecision"] == _ALLOWED for result in response["EvaluationResults"])


def _client() -> Any:
    return boto3.client("iam", config=_TIMEOUTS)


def _from_error(role_arn: str, error: ClientError) -> RoleAccess:
    code = error.response.get("Error", {}).get("Code", "")
    if code in _MISSING:
        return RoleAccess(ok=False, message=f"Role {role_arn} does not exist.")
    message = (
        f"Access could not be simulated ({code}): the portal's role needs "
        "iam:SimulatePrincipalPolicy."
    )
    return RoleAccess(None, message)
