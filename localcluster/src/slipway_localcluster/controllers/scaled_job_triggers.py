"""The message counts of a ScaledJob's triggers, as KEDA's scalers redis-streams and aws-sqs-queue count them."""

import math
from collections.abc import Mapping

import boto3
import redis
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from slipway_localcluster.errors import JsonObject

_TIMEOUT = 2.0
_IN_SQS = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


class TriggerError(Exception):
    """KEDA would refuse it, or its source does not answer."""


def demand(trigger: JsonObject, parameters: Mapping[str, str]) -> int:
    """Return the workers that the trigger's count requires. `parameters` are those of its TriggerAuthentication."""
    counters = {"redis-streams": _of_stream, "aws-sqs-queue": _of_sqs}
    count = counters.get(trigger["type"])
    if count is None:
        raise TriggerError(f"no scaler found for type: {trigger['type']}")
    return count(trigger["metadata"], parameters)


def _of_stream(values: Mapping[str, str], parameters: Mapping[str, str]) -> int:
    try:
        with _client(values, parameters.get("password", "")) as client:
            if "lagCount" in values:
                lag = _lag(client, values["stream"], values["consumerGroup"])
                return math.ceil(lag / int(values["lagCount"]))
            pending = client.xpending(values["stream"], values["consumerGroup"])["pending"]
            return math.ceil(int(pending) / int(values["pendingEntriesCount"]))
    except redis.RedisError as error:
        raise TriggerError(str(error)) from error


def _client(values: Mapping[str, str], password: str) -> redis.Redis:
    host, _, port = values["address"].rpartition(":")
    return redis.Redis(
        host=host,
        port=int(port),
        username=values.get("username") or None,
        password=password or None,
        ssl=values.get("enableTLS") == "true",
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_TIMEOUT,
    )


def _lag(client: redis.Redis, stream: str, group: str) -> int:
    """Return the group's lag. Until the group is there, all that is in the stream counts, as in KEDA."""
    try:
        groups = client.xinfo_groups(stream)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return 0
        raise
    for item in groups:
        if item["name"].decode() == group:
            return int(item["lag"] or 0)
    return int(client.xlen(stream))


def _of_sqs(values: Mapping[str, str], parameters: Mapping[str, str]) -> int:
    names = _IN_SQS if values.get("scaleOnInFlight", "true") == "true" else _IN_SQS[:1]
    client = boto3.client(
        "sqs",
        endpoint_url=values.get("awsEndpoint") or None,
        region_name=values["awsRegion"],
        aws_access_key_id=parameters.get("awsAccessKeyID") or None,
        aws_secret_access_key=parameters.get("awsSecretAccessKey") or None,
        config=Config(
            connect_timeout=_TIMEOUT, read_timeout=_TIMEOUT, retries={"total_max_attempts": 1}
        ),
    )
    try:
        answer = client.get_queue_attributes(
            QueueUrl=values["queueURL"], AttributeNames=list(names)
        )
    except (BotoCoreError, ClientError) as error:
        raise TriggerError(str(error)) from error
    count = sum(int(answer["Attributes"].get(name, 0)) for name in names)
    return math.ceil(count / int(values.get("queueLength", 5)))
