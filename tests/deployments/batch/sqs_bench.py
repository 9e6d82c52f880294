"""A job that drains a queue of SQS (moto's server, by HTTP) into a real store; the worker's program runs here, without Triton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.deployments.batch.queue_bench import Drain, request_of

ACCOUNT, NAME = "123456789012", "requests"


@dataclass
class SqsBench(Drain):
    """`queue` and `dead` are URLs at the server."""

    client: Any
    queue: str
    dead: str

    def send(self, *values: int) -> list[str]:
        return [self.send_body(request_of(value)) for value in values]

    def send_body(self, body: str, **more: Any) -> str:
        return str(
            self.client.send_message(QueueUrl=self.queue, MessageBody=body, **more)["MessageId"]
        )

    def counts(self, queue: str = "") -> tuple[int, int]:
        """Messages that can be received, and those in flight."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        answer = self.client.get_queue_attributes(
            QueueUrl=queue or self.queue, AttributeNames=list(names)
        )
        return (int(answer["Attributes"][names[0]]), int(answer["Attributes"][names[1]]))

    def make_visible(self) -> None:
        """The time-out of what a dead worker had is over."""
        from moto.sqs.models import sqs_backends

        for found in sqs_backends[ACCOUNT]["us-east-1"].queues.values():
            for message in found._messages:
                message.change_visibility(0)

    def letters(self) -> list[dict[str, str]]:
        """Body and attributes of each dead letter."""
        letters: list[dict[str, str]] = []
        while found := self.client.receive_message(
            QueueUrl=self.dead, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            for message in found:
                texts = {n: a["StringValue"] for n, a in message["MessageAttributes"].items()}
                letters.append({"body": message["Body"], **texts})
        return letters
