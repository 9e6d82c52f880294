"""Queues outside the cluster whose length scales replicas, as KEDA reads them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from portal.core.definitions import Definition, setting

_SQS_URL: Final = (
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/[0-9]{12}/[-A-Za-z0-9_]{1,80}(\.fifo)?"
)
_HOST: Final = r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?:[0-9]{1,5}"
_TOPIC: Final = r"[-A-Za-z0-9._]{1,249}"
_OBJECT_NAME: Final = r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?"
_PER_REPLICA: Final[dict[str, Any]] = {
    "ge": 1,
    "le": 100_000,
    "fix": "Use 1 to 100000.",
}


def _secret(keys: str) -> Any:
    return setting(
        "Secret",
        f"In the team's namespace, with {keys}. Leave empty for no authentication.",
        pattern=f"({_OBJECT_NAME})?",
        max_length=63,
        fix="Use the name of a Secret, for example jobs-auth.",
    )


class SqsQueue(Definition):
    """The messages of an SQS queue, in flight ones too. KEDA's own role reads them."""

    queue_url: Annotated[
        str,
        setting(
            "Queue URL",
            "KEDA's own role reads it.",
            placeholder="https://sqs.us-east-1.amazonaws.com/111122223333/jobs",
            pattern=_SQS_URL,
            max_length=300,
            fix="Use the queue's URL: https://sqs.us-east-1.amazonaws.com/111122223333/jobs.",
        ),
    ]
    messages: Annotated[
        int,
        setting(
            "Messages per replica",
            "Number of messages for which one more replica starts.",
            **_PER_REPLICA,
        ),
    ] = 20

    @property
    def region(self) -> str:
        match = re.fullmatch(_SQS_URL, self.queue_url)
        return match[1] if match else ""


class KafkaTopic(Definition):
    """The messages of a topic that a consumer group has not read yet."""

    bootstrap_servers: Annotated[
        str,
        setting(
            "Bootstrap servers",
            "One or more host:port, separated by commas.",
            placeholder="kafka.data:9092",
            pattern=rf"{_HOST}(,{_HOST}){{0,9}}",
            max_length=500,
            fix="Use host:port, for example kafka.data:9092.",
        ),
    ]
    topic: Annotated[
        str,
        setting(
            "Topic",
            "Name of the topic.",
            pattern=_TOPIC,
            max_length=249,
            fix="Use letters, digits, dots, dashes and underscores.",
        ),
    ]
    consumer_group: Annotated[
        str,
        setting(
            "Consumer group",
            "The one whose lag counts.",
            pattern=_TOPIC,
            max_length=249,
            fix="Use letters, digits, dots, dashes and underscores.",
        ),
    ]
    lag: Annotated[
        int,
        setting(
            "Lag per replica",
            "Lag for which one more replica starts.",
            unit="messages",
            **_PER_REPLICA,
        ),
    ] = 100
    secret: Annotated[str, _secret("keys sasl, username, password and tls")] = ""


class RedisList(Definition):
    """The items of a list in Redis or Valkey."""

    address: Annotated[
        str,
        setting(
            "Address",
            "host:port of the server.",
            placeholder="redis.data:6379",
            pattern=_HOST,
            max_length=260,
            fix="Use host:port, for example redis.data:6379.",
        ),
    ]
    list: Annotated[
        str,
        setting(
            "List",
            "Key of the list.",
            pattern=r"\S{1,200}",
            max_length=200,
            fix="Use the key of the list, without spaces.",
        ),
    ]
    items: Annotated[
        int,
        setting(
            "Items per replica",
            "Number of items for which one more replica starts.",
            **_PER_REPLICA,
        ),
    ] = 20
    secret: Annotated[str, _secret("key password")] = ""
