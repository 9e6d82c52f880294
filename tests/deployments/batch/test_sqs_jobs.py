"""A job that drains a queue of SQS: what a worker that dies between two effects leaves, tries, and dead letters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.batch.domain import worker_outbox, worker_store
from deployments.batch.domain.sources.sqs.api import SqsApi
from deployments.batch.domain.sources.sqs.queue import SqsSource
from deployments.batch.domain.worker_store import WorkerEnded
from tests.deployments.batch.queue_bench import Killed, Triton, request_of, run_until_killed
from tests.deployments.batch.sqs_bench import ACCOUNT, SqsBench


def test_it_drains_a_queue_into_parts_and_counts(sqs_bench: SqsBench) -> None:
    ids = sqs_bench.send(*range(1, 31))
    job = sqs_bench.running(workers=3)

    sqs_bench.work()
    sqs_bench.bench.tick(job)

    assert sqs_bench.answered() == {ids[n - 1]: [2 * n] for n in range(1, 31)}
    assert sqs_bench.counts() == (0, 0)
    assert job.drained is not None
    assert (job.done_rows, job.failed_rows, job.drained["waiting"]) == (30, 0, 0)


EFFECTS = [
    (SqsSource, "read"),
    (SqsSource, "acknowledge"),
    (SqsSource, "bury"),
    (SqsSource, "send_dead"),
    (SqsSource, "release"),
    (SqsSource, "leave"),
    (worker_outbox.Outbox, "create"),
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("owner", "effect"), EFFECTS, ids=[name for _, name in EFFECTS])
def test_a_worker_killed_at_any_effect_loses_no_message_and_answers_each_once(
    sqs_bench: SqsBench, monkeypatch: pytest.MonkeyPatch, owner: type, effect: str, moment: str
) -> None:
    ids = sqs_bench.send(1, 2, 13, 4)
    job = sqs_bench.running()
    first = sqs_bench.consumer(Triton(refuses=frozenset({13})))
    assert run_until_killed(first, monkeypatch, owner, effect, moment)
    sqs_bench.make_visible()
    sqs_bench.work(Triton(refuses=frozenset({13})))
    sqs_bench.bench.tick(job)

    assert sqs_bench.answered() == {ids[0]: [2], ids[1]: [4], ids[3]: [8]}
    letters = {letter["slipway.id"]: letter for letter in sqs_bench.letters()}
    assert set(letters) == {ids[2]}
    assert letters[ids[2]]["slipway.reason"] == "the model refuses 13"
    assert letters[ids[2]]["body"] == request_of(13), "it can be sent again as it was"
    assert sqs_bench.counts() == (0, 0)


def test_a_part_that_its_worker_did_not_report_counts_once_and_can_be_downloaded(
    sqs_bench: SqsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs_bench.send(1)
    job = sqs_bench.running()
    first = sqs_bench.consumer()
    monkeypatch.setattr(first.source, "acknowledge", _killed)
    monkeypatch.setattr(first, "end", lambda: None)
    with pytest.raises(Killed):
        first.run()
    sqs_bench.bench.tick(job)
    assert (job.done_rows, job.chunks.count()) == (1, 1)

    sqs_bench.make_visible()
    second = sqs_bench.consumer()
    second.run()
    # The first one was only slow: it reports its part, too.
    first.counts["answered"] = 1
    first.report(0, 1)
    sqs_bench.bench.tick(job)

    assert second.server.asked == [], "it has an answer"
    assert (job.done_rows, [(c.number, c.rows) for c in job.chunks.all()]) == (1, [(0, 1)])


def _killed(*_: Any) -> None:
    raise Killed


def test_a_message_that_ends_triton_is_a_dead_letter_and_takes_no_other_along(
    sqs_bench: SqsBench,
) -> None:
    ids = sqs_bench.send(*range(1, 41))
    job = sqs_bench.running(requests=16)
    for _ in range(10):
        try:
            sqs_bench.work(Triton(crashes_at=frozenset({17})))
            break
        except WorkerEnded:
            sqs_bench.make_visible()
    sqs_bench.bench.tick(job)

    assert sqs_bench.answered() == {ids[n - 1]: [2 * n] for n in range(1, 41) if n != 17}
    (letter,) = sqs_bench.letters()
    assert letter["slipway.id"] == ids[16]
    assert letter["slipway.reason"] == "it was delivered 3 times and its worker ended each time"
    assert letter["slipway.deliveries"] == "4"


def test_a_queue_that_takes_messages_away_is_given_its_dead_letters_before(
    sqs_bench: SqsBench,
) -> None:
    policy = {
        "deadLetterTargetArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:requests-dead",
        "maxReceiveCount": "3",
    }
    sqs_bench.client.set_queue_attributes(
        QueueUrl=sqs_bench.queue, Attributes={"RedrivePolicy": json.dumps(policy)}
    )
    ids = sqs_bench.send(17)
    sqs_bench.running(tries=10)
    for _ in range(2):
        with pytest.raises(WorkerEnded):
            sqs_bench.work(Triton(crashes_at=frozenset({17})))
        sqs_bench.make_visible()
    sqs_bench.work(Triton(crashes_at=frozenset({17})))

    (letter,) = sqs_bench.letters()
    assert letter["slipway.id"] == ids[0]
    assert letter["slipway.reason"] == "it was delivered 2 times and its worker ended each time"


def test_what_is_worked_on_stays_invisible_and_what_is_given_back_is_there_at_once(
    sqs_bench: SqsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, list[int]]] = []
    whole = SqsApi.call

    def noted(self: SqsApi, action: str, **values: Any) -> Any:
        if action == "change_message_visibility_batch":
            calls.append((action, [entry["VisibilityTimeout"] for entry in values["Entries"]]))
        return whole(self, action, **values)

    monkeypatch.setattr(SqsApi, "call", noted)
    sqs_bench.send(1)
    sqs_bench.running()
    consumer = sqs_bench.consumer()
    consumer.hold(consumer.source.read(10, 0))
    assert sqs_bench.counts() == (0, 1)

    consumer.keep_held()
    assert sqs_bench.counts() == (0, 1)
    consumer.end()

    assert [seconds for _, seconds in calls] == [[60], [0]]
    assert sqs_bench.counts() == (1, 0)


def test_a_second_delivery_to_the_same_worker_is_not_sent_to_the_model_again(
    sqs_bench: SqsBench,
) -> None:
    sqs_bench.send(1)
    sqs_bench.running()
    consumer = sqs_bench.consumer()
    (message,) = consumer.source.read(10, 0)
    consumer.hold([message])
    sqs_bench.make_visible()

    (again,) = consumer.source.read(10, 0)
    assert (again.id, again.deliveries) == (message.id, 2)
    assert consumer.new_of([again]) == []
    assert message.handle == again.handle, "the newest receipt deletes it"


def test_a_body_may_hold_a_value_for_each_input(sqs_bench: SqsBench) -> None:
    good = sqs_bench.send_body(json.dumps({"x": [7], "id": "r1"}))
    for body in ('{"x": "seven"}', '{"y": 7}', "{no", "[]"):
        sqs_bench.send_body(body)
    sqs_bench.running()

    sqs_bench.work(columns=[["x", "INT32", [1, 1]]])

    assert sqs_bench.answered() == {good: [14]}
    reasons = sorted(letter["slipway.reason"].partition(":")[0] for letter in sqs_bench.letters())
    assert reasons == [
        "field x",
        "the message has neither a request nor the input x",
        'the request has no "inputs" of the inference protocol',
        "the request is not JSON",
    ]


def test_attributes_of_a_message_go_with_it_to_the_dead_letters(sqs_bench: SqsBench) -> None:
    own = {"tenant": {"DataType": "String", "StringValue": "a"}}
    sqs_bench.send_body("{no", MessageAttributes=own)
    sqs_bench.running()
    sqs_bench.work()

    (letter,) = sqs_bench.letters()
    assert (letter["tenant"], letter["body"]) == ("a", "{no")


def test_without_a_queue_for_dead_letters_nothing_is_taken(sqs_bench: SqsBench) -> None:
    sqs_bench.send(1)
    sqs_bench.running(dead_letters="elsewhere")

    with pytest.raises(WorkerEnded) as ended:
        sqs_bench.consumer()

    assert ended.value.code == worker_store.NEVER
    assert str(ended.value) == (
        "there is no queue elsewhere for dead letters: make it, or name another one"
    )
    assert sqs_bench.counts() == (1, 0)
