"""A client of SQS: a part of the program of queue workers (program.py), which has loaded botocore before."""

from __future__ import annotations

import importlib
import ssl
from pathlib import Path
from typing import Any

from deployments.batch.domain.sources.message import QueueError
from deployments.batch.domain.worker_store import ATTEMPTS, NEVER, Json, WorkerEnded

SQS_SECONDS = 30
MISSING = ("QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently")
NOT_ALLOWED = (
    *("AccessDenied", "AccessDeniedException", "AuthFailure", "InvalidClientTokenId"),
    *("SignatureDoesNotMatch", "InvalidSecurity", "UnrecognizedClientException"),
    *("ExpiredToken", "ExpiredTokenException", "RequestExpired"),
)
# In an answer that botocore tried to get again, as often as it does.
GIVEN_UP = {"MaxAttemptsReached", "RetryQuotaReached"}
# The authorities that the image trusts may include a private one. Debian's Python does not name its bundle.
BUNDLES = (ssl.get_default_verify_paths().cafile, "/etc/ssl/certs/ca-certificates.crt")
NO_CREDENTIALS = (
    "the pod has no credentials of AWS: give the role of the team's models access to the queue, or name a Secret "
    "with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)


class SqsError(QueueError):
    """An error that SQS answers instead of a value. `kind` is its own name for it."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class SqsApi:
    """A client for several threads. All calls here may be sent twice.

    Credentials are those of the environment, of the service account's role (IRSA) or of EKS Pod Identity.
    """

    def __init__(self, endpoint: str, region: str) -> None:
        self.errors: Any = importlib.import_module("botocore.exceptions")
        session = importlib.import_module("botocore.session").Session()
        session.set_config_variable("region", region)
        # The role of the node is not the team's.
        session.get_component("credential_provider").remove("iam-role")
        retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
        config = importlib.import_module("botocore.config").Config(
            connect_timeout=SQS_SECONDS, read_timeout=SQS_SECONDS, retries=retries
        )
        bundle = next((path for path in BUNDLES if path and Path(path).is_file()), None)
        try:
            self.client: Any = session.create_client(
                "sqs", endpoint_url=endpoint, config=config, verify=bundle
            )
        except self.errors.BotoCoreError as error:
            raise WorkerEnded(1, f"AWS gives the pod no credentials: {error}") from None

    def call(self, action: str, **values: Any) -> Json:
        """Call an action by its name in Python, for example receive_message."""
        try:
            answer: Json = getattr(self.client, action)(**values)
        except self.errors.NoCredentialsError:
            raise WorkerEnded(NEVER, NO_CREDENTIALS) from None
        except self.errors.CredentialRetrievalError as error:
            raise WorkerEnded(1, f"AWS gives the pod no credentials: {error}") from None
        except self.errors.BotoCoreError as error:
            raise WorkerEnded(1, f"the queue does not answer: {error}") from None
        except self.errors.ClientError as error:
            raise self.problem_of(action, error.response, error.operation_name, values) from None
        return answer

    def problem_of(self, action: str, response: Json, operation: str, values: Json) -> Exception:
        kind = response["Error"]["Code"].rpartition("#")[2].rpartition(".")[2]
        detail = str(response["Error"].get("Message", ""))[:300]
        problem = f"{kind}: {detail}"
        if operation == "AssumeRoleWithWebIdentity":
            return WorkerEnded(1, f"AWS gives the pod no credentials: {problem}")
        if kind in MISSING:
            return WorkerEnded(NEVER, f"the queue {values.get('QueueUrl')} does not exist")
        if kind in NOT_ALLOWED:
            return WorkerEnded(1, f"SQS refuses the worker sqs:{operation}: {problem}")
        if not GIVEN_UP.isdisjoint(response["ResponseMetadata"]):
            return WorkerEnded(1, f"the queue does not answer: {problem}")
        return SqsError(kind, detail)
