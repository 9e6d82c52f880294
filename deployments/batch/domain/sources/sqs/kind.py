"""A queue of SQS by its URL: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME, or that of a server with the same API."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Final

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.sources import interface
from deployments.batch.domain.sources.interface import MessageQueue
from deployments.batch.domain.sources.library import Library
from deployments.batch.domain.sources.sqs import api, queue
from portal.core.definitions import Rejected

# A worker that is gone: its messages are visible again after it. Renewed three times in it.
VISIBILITY_SECONDS: Final = 60
_DEAD: Final = "-dead"
_FIFO: Final = ".fifo"
_NAME: Final = r"[-A-Za-z0-9_]{1,80}(\.fifo)?"
_HOST: Final = r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?"
_ADDRESS: Final = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_HOST})(:(?P<port>[0-9]{{1,5}}))?/(?P<account>[0-9]{{12}})/(?P<name>{_NAME})"
)
_AWS: Final = re.compile(r"sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?")
_AMAZON: Final = ("amazonaws.com", "amazonaws.com.cn")
# Of a server with the API of SQS, which has no regions.
_REGION: Final = "us-east-1"
_PORTS: Final = {"http": 80, "https": 443}
# Of botocore's descriptions of 400 services two are used.
_BOTOCORE: Final = Library(
    ("botocore", "dateutil", "jmespath", "six", "urllib3"),
    left_out=frozenset(["dateutil/zoneinfo/dateutil-zoneinfo.tar.gz"]),
    data="botocore/data",
    kept_data=frozenset(["sqs", "sts"]),
)
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class SqsKind:
    """The interface QueueKind."""

    example: str = "https://sqs.eu-west-1.amazonaws.com/111122223333/requests"
    schemes: tuple[str, ...] = ("https://", "http://")
    modules: tuple[ModuleType, ...] = (api, queue)
    source_class: str = queue.SqsSource.__name__

    def library(self) -> Library | None:
        return _BOTOCORE

    def places_of(self, address: str) -> tuple[str, ...]:
        """Return host, account and name of the queue, because one server has the queues of all teams."""
        parts = self._parse(address)
        port = f":{parts['port']}" if parts["port"] else ""
        return (f"{parts['host']}{port}/{parts['account']}/{parts['name']}",)

    def check_output(self, output: str, source: str) -> None:
        raise _rejected(
            "output",
            "Answers to messages of SQS go to a prefix of S3: two queues cannot be written at once, so an answer could be "
            "there twice.",
        )

    def read(self, source: str, output: str, settings: BatchSettings) -> MessageQueue:
        found = self._parse(source)
        if settings.consumer_group:
            raise _rejected("consumer_group", "SQS has no consumer groups. Leave it empty.")
        name, host, scheme = found["name"], found["host"], found["scheme"]
        dead_letters = settings.dead_letters or _dead_letters_of(name)
        if not re.fullmatch(_NAME, dead_letters) or len(dead_letters) > 80:
            raise _rejected(
                "dead_letters",
                f"Enter the name of a queue beside {name} with at most 80 letters, digits, dashes and underscores, for "
                "example requests-dead.",
            )
        if dead_letters == name:
            raise _rejected("dead_letters", f"{name} is the queue of messages. Use another.")
        aws = _AWS.fullmatch(host)
        port = f":{found['port']}" if found["port"] else ""
        endpoint = f"{scheme}://{host}{port}"
        plan = {
            "endpoint": endpoint,
            "is_aws": aws is not None,
            "region": aws["region"] if aws else _REGION,
            "url": source.strip(),
            "dead_letters": dead_letters,
            "dead_letters_url": f"{endpoint}/{found['account']}/{dead_letters}",
            "visibility": VISIBILITY_SECONDS,
            "tries": settings.tries,
            "answers": "",
            "library": _BOTOCORE.digest,
        }
        servers = ((host, int(found["port"] or _PORTS[scheme])),)
        return MessageQueue(self, plan, servers, name, "", dead_letters)

    def triggers(self, queue: MessageQueue, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return KEDA's trigger, which counts messages that wait and those in flight, whose worker may be gone."""
        metadata = {
            "queueURL": queue.plan["url"],
            "awsRegion": queue.plan["region"],
            "queueLength": str(settings.messages_per_worker),
            "scaleOnInFlight": "true",
        }
        if not queue.plan["is_aws"]:
            metadata["awsEndpoint"] = queue.plan["endpoint"]
        return [{"type": "aws-sqs-queue", "name": "messages", "metadata": metadata}]

    def authentication(self, settings: BatchSettings) -> dict[str, Any] | None:
        """Return KEDA's authentication from the Secret. Without one KEDA's own role reads the length, as it does
        for deployments.
        """
        parameters = zip(("awsAccessKeyID", "awsSecretAccessKey"), _KEYS, strict=True)
        of_secret = interface.secret_parameters(settings.secret, list(parameters))
        return of_secret or {"podIdentity": {"provider": "aws"}}

    def environment(self, settings: BatchSettings) -> list[dict[str, Any]]:
        """Return the workers' credentials from the Secret. Without one they use the role of the service account."""
        return interface.environment_of(settings.secret, [(key, key) for key in _KEYS])

    def _parse(self, text: str) -> re.Match[str]:
        match = _ADDRESS.fullmatch(text.strip())
        is_usable = match is not None and 0 < int(match["port"] or 443) < 65536
        if match is not None and match["host"].endswith(_AMAZON):
            is_plain = match["scheme"] == "http" or match["port"] is not None
            is_usable = bool(_AWS.fullmatch(match["host"])) and not is_plain
        if match is None or not is_usable:
            raise _rejected(
                "input",
                f"Enter the URL of a queue of SQS, for example {self.example}; files have s3:// addresses.",
            )
        return match


def _dead_letters_of(name: str) -> str:
    if name.endswith(_FIFO):
        return f"{name.removesuffix(_FIFO)}{_DEAD}{_FIFO}"
    return name + _DEAD


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
