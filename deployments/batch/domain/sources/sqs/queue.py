"""A queue of SQS as the source of a queue worker: a part of its program (program.py).

A message that was received is invisible to others until its time-out, which is renewed while it is worked on.
"""

from __future__ import annotations

import json
from typing import Any

from deployments.batch.domain.sources.message import BODY, Message, QueueError
from deployments.batch.domain.sources.sqs.api import SqsApi, SqsError
from deployments.batch.domain.worker_store import (
    ATTEMPTS,
    NEVER,
    POLL_SECONDS,
    Json,
    WorkerEnded,
    pause,
)

# Of one call of SQS.
BATCH = 10
# Messages that others had, of one read.
FEW = 32
# Of a message, without those that say why it is dead.
KEPT_ATTRIBUTES = 7
CUT_CHARACTERS = 10_000
# Its receipt is too old, or the message is deleted: nothing is left to do.
GONE = ("ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight")


class SqsSource:
    """A queue of SQS as a source. `source` is the plan's part that SqsKind.read makes."""

    flushes = False

    def __init__(self, source: Json, _consumer: str) -> None:
        self.api = SqsApi(source["endpoint"], source["region"])
        self.url, self.dead_url = source["url"], source["dead_letters_url"]
        self.dead_letters, self.seconds = source["dead_letters"], source["visibility"]
        # What SQS moves to its own dead letters is no longer here to be given a reason.
        self.max_deliveries: int | None = None
        self.tries, self.window = source["tries"], 1

    def prepare(self) -> None:
        policy = self.attributes(self.url, "RedrivePolicy").get("RedrivePolicy")
        if policy:
            self.max_deliveries = max(1, int(json.loads(policy)["maxReceiveCount"]) - 1)
            self.tries = min(self.tries, self.max_deliveries)
        try:
            self.attributes(self.dead_url, "QueueArn")
        except WorkerEnded as end:
            if end.code != NEVER:
                raise
            detail = f"there is no queue {self.dead_letters} for dead letters: make it, or name another one"
            raise WorkerEnded(NEVER, detail) from None

    def read(self, count: int, wait_ms: int) -> list[Message]:
        """Read messages; each receipt counts as a delivery.

        So a new worker begins with one message, takes few that others had, and those at their last try one by one:
        one that ends its worker takes few others along.
        """
        messages: list[Message] = []
        most = min(count, self.window)
        while len(messages) < most:
            answer = self.api.call(
                "receive_message",
                QueueUrl=self.url,
                MaxNumberOfMessages=min(BATCH, most - len(messages)),
                VisibilityTimeout=self.seconds,
                WaitTimeSeconds=0 if messages else max(0, wait_ms // 1000),
                MessageSystemAttributeNames=["ApproximateReceiveCount", "MessageGroupId"],
                MessageAttributeNames=["All"],
            )
            received = [received_message(item) for item in answer.get("Messages") or ()]
            messages += received
            again = sum(message.deliveries > 1 for message in messages)
            if not received or again >= FEW or self.is_last_try(received):
                break
        self.window = 1 if self.is_last_try(messages) else min(self.window * 2, count)
        return messages

    def is_last_try(self, messages: list[Message]) -> bool:
        return any(message.deliveries >= self.tries for message in messages)

    def claim(self, _idle_ms: int, _count: int) -> list[Message]:
        return []

    def take(self, messages: list[Message]) -> list[Message]:
        return messages

    def keep(self, messages: list[Message]) -> None:
        self.change_visibility(messages, self.seconds)

    def release(self, messages: list[Message]) -> None:
        self.change_visibility(messages, 0)

    def change_visibility(self, messages: list[Message], seconds: int) -> None:
        for group in groups_of(messages):
            entries = [
                {"Id": str(n), "ReceiptHandle": m.handle["receipt"], "VisibilityTimeout": seconds}
                for n, m in enumerate(group)
            ]
            # One that is gone is another worker's, or nobody's.
            self.api.call("change_message_visibility_batch", QueueUrl=self.url, Entries=entries)

    def acknowledge(self, messages: list[Message]) -> int:
        for group in groups_of(messages):
            self.delete(group)
        return len(messages)

    def delete(self, group: list[Message]) -> None:
        left = {str(n): m.handle["receipt"] for n, m in enumerate(group)}
        failed: list[Json] = []
        for attempt in range(ATTEMPTS):
            entries = [{"Id": n, "ReceiptHandle": receipt} for n, receipt in left.items()]
            answer = self.api.call("delete_message_batch", QueueUrl=self.url, Entries=entries)
            failed = [f for f in answer.get("Failed") or () if f.get("Code") not in GONE]
            left = {f["Id"]: left[f["Id"]] for f in failed}
            if not left:
                return
            pause(min(2**attempt, 20) * POLL_SECONDS)
        raise QueueError(f"SQS does not delete messages: {failed[0].get('Message')}")

    def answer(self, _answered: list[Any]) -> int:
        raise NotImplementedError("answers to messages of SQS go to the object store")

    def bury(self, dead: list[Any]) -> int:
        """Send pairs of a message and its reason to the dead letters, with the reason in its attributes, then
        delete the message.
        """
        for message, reason in dead:
            try:
                self.send_dead(message, reason, message.fields[BODY].decode())
            except SqsError:
                # With its reason it is larger than the queue allows.
                body = message.fields[BODY].decode()[:CUT_CHARACTERS]
                self.send_dead(message, f"{reason} (the message is cut)", body)
            self.acknowledge([message])
        return len(dead)

    def send_dead(self, message: Message, reason: str, body: str) -> None:
        kept = list(message.handle["attributes"].items())[:KEPT_ATTRIBUTES]
        attributes = {
            **{name: {k: v for k, v in value.items() if v} for name, value in kept},
            "slipway.id": text_attribute(message.id),
            "slipway.reason": text_attribute(reason),
            "slipway.deliveries": text_attribute(str(message.deliveries)),
        }
        ordered: Json = {}
        if self.dead_url.endswith(".fifo"):
            group = message.handle["group"] or "slipway"
            ordered = {"MessageGroupId": group, "MessageDeduplicationId": message.id}
        self.api.call(
            "send_message",
            QueueUrl=self.dead_url,
            MessageBody=body,
            MessageAttributes=attributes,
            **ordered,
        )

    def depth(self) -> Any:
        """Return how many messages can be received, and how many are invisible, as SQS estimates both."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        counts = self.attributes(self.url, *names)
        return tuple(int(counts.get(name, 0)) for name in names)

    def leave(self) -> None:
        """Do nothing: SQS knows no consumers."""

    def attributes(self, url: str, *names: str) -> Json:
        answer = self.api.call("get_queue_attributes", QueueUrl=url, AttributeNames=list(names))
        return dict(answer.get("Attributes") or {})


def received_message(item: Json) -> Message:
    system = item.get("Attributes") or {}
    handle = {
        "receipt": item["ReceiptHandle"],
        "group": system.get("MessageGroupId", ""),
        "attributes": item.get("MessageAttributes") or {},
    }
    deliveries = int(system.get("ApproximateReceiveCount", 1))
    return Message(item["MessageId"], {BODY: item["Body"].encode()}, deliveries, handle)


def text_attribute(text: str) -> Json:
    """Return a text attribute, with characters that SQS does not take replaced by spaces."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return {"DataType": "String", "StringValue": plain or "-"}


def groups_of(messages: list[Message]) -> list[list[Message]]:
    return [messages[n : n + BATCH] for n in range(0, len(messages), BATCH)]
