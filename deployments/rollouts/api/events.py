"""The events of a rollout, for notebooks that wait: as a stream, or as one answer that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.rollouts.api.serializers import RolloutSerializer
from deployments.rollouts.selectors.events import EventCursor, News
from portal.api import streams
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM

_STREAM_SECONDS: Final = 25
_LONGEST_SECONDS: Final = 55
_HEARTBEAT_EVERY: Final = 10
_BACK_SECONDS: Final = 1.0
_BACK_WHEN_FULL_SECONDS: Final = 5.0
# Beyond any id: SQLite and PostgreSQL hold 64 bits.
_HIGHEST_ID: Final = 2**63 - 1


class EventsQuerySerializer(Serializer):
    after = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=_HIGHEST_ID,
        help_text="id of the last event you received; Last-Event-ID does the same",
    )
    wait = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=_LONGEST_SECONDS,
        help_text="seconds to wait for a new event; default 0, or 25 for a stream",
    )


class RolloutEventSerializer(Serializer):
    """An event of a rollout."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="the phase after the event")
    message = serializers.CharField()
    actor_name = serializers.CharField(help_text="Empty if the portal itself did it.")
    step_index = serializers.IntegerField()


class RolloutNewsSerializer(Serializer):
    """The events of a rollout since `after`; pass it on to get only new ones."""

    events = RolloutEventSerializer(many=True, help_text="oldest first, at most 200")
    after = serializers.IntegerField(help_text="pass it as `after` to get only new events")
    rollout = RolloutSerializer(source="view", allow_null=True)
    is_final = serializers.BooleanField()


# A class could not declare a field named data.
_STREAMED = inline_serializer(
    "ServerSentEvent",
    {
        "id": serializers.CharField(required=False),
        "event": serializers.CharField(help_text="event, state, end"),
        "data": serializers.CharField(help_text="JSON"),
        "retry": serializers.IntegerField(required=False, help_text="milliseconds"),
    },
)
_DESCRIPTION = """What happened, oldest first, and the rollout as it is now.

With `Accept: text/event-stream` the answer is a stream: `event` for each thing that happened (its
id resumes the stream by Last-Event-ID), `state` with the rollout at the beginning and whenever a
verdict, a step or a weight changes, `end` when the rollout has ended. A stream lives `wait` seconds;
clients come back by themselves. When all places are taken it ends at once, with a longer `retry`.
With `Accept: application/json` it is one answer, which waits until there is something after `after`."""


class RolloutEventsView(APIView):
    renderer_classes = (JSONRenderer, streams.EventStreamRenderer)

    @extend_schema(
        operation_id="watch_rollout",
        tags=["rollouts"],
        parameters=[
            EventsQuerySerializer,
            OpenApiParameter("Last-Event-ID", int, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "application/json"): RolloutNewsSerializer,
            (200, streams.MEDIA_TYPE): OpenApiResponse(_STREAMED, "Server-Sent Events"),
            204: OpenApiResponse(
                None, "Stream only: the rollout has ended and every event was sent"
            ),
            404: PROBLEM,
            422: PROBLEM,
        },
        description=_DESCRIPTION,
    )
    def get(self, request: Request, rollout_id: int) -> HttpResponseBase:
        query = read_query(EventsQuerySerializer, request)
        after = _last_event(request, query.get("after", 0))
        cursor = EventCursor(actor=actor_of(request), rollout_id=rollout_id, after=after)
        wait = query.get("wait")
        if request.accepted_media_type == streams.MEDIA_TYPE:
            return _stream(cursor, _STREAM_SECONDS if wait is None else wait)
        return _answer(cursor, wait or 0)


def _last_event(request: Request, after: int) -> int:
    header = request.headers.get("Last-Event-ID", "")
    if header.isascii() and header.isdecimal():
        return min(int(header), _HIGHEST_ID)
    return after


def _answer(cursor: EventCursor, seconds: int) -> Response:
    initial_after = cursor.after
    latest = News()
    with streams.slot() as has_slot:
        for count, news in enumerate(cursor.watch(seconds=seconds if has_slot else 0)):
            latest = News(news.events or latest.events, news.view or latest.view)
            # The first poll always returns the state, which a returning client already has.
            is_known = count == 0 and initial_after > 0 and not news.events
            if not news.is_empty and not is_known:
                break
    body = {
        "events": latest.events,
        "after": cursor.after,
        "view": latest.view,
        "is_final": cursor.is_final,
    }
    return Response(RolloutNewsSerializer(body).data, headers={"Cache-Control": "no-store"})


def _stream(cursor: EventCursor, seconds: int) -> HttpResponseBase:
    # Polled before the response begins, so that a refusal is a problem and not a broken stream.
    first = cursor.poll()
    if cursor.is_final and not first.events:
        # Tells a browser's EventSource not to come back.
        return HttpResponse(status=204)
    return StreamingHttpResponse(
        _lines(cursor, first, seconds),
        content_type=f"{streams.MEDIA_TYPE}; charset=utf-8",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _lines(cursor: EventCursor, first: News, seconds: int) -> Iterator[str]:
    with streams.slot() as has_slot:
        yield streams.reconnect_after(_BACK_SECONDS if has_slot else _BACK_WHEN_FULL_SECONDS)
        yield from _format_news(first)
        if has_slot and not cursor.is_final:
            for second, news in enumerate(cursor.watch(seconds=seconds), start=1):
                yield from _format_news(news)
                if news.is_empty and second % _HEARTBEAT_EVERY == 0:
                    yield streams.heartbeat()
        if cursor.is_final:
            yield streams.format_event("end", {"rollout_id": cursor.rollout_id})


def _format_news(news: News) -> Iterator[str]:
    for event in news.events:
        data = cast("dict[str, Any]", RolloutEventSerializer(event).data)
        yield streams.format_event("event", data, event_id=event.pk)
    if news.view is not None:
        yield streams.format_event("state", RolloutSerializer(news.view).data)
