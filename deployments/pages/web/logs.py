"""The Logs tab: what is read and filtered, and its lines as HTML or as a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from deployments.delivery.domain import log_lines
from deployments.delivery.domain.log_lines import LogLevel, LogLine
from deployments.delivery.services import pod_logs
from deployments.delivery.services.pod_logs import PodLogs
from deployments.models import Deployment
from portal.accounts.models import User
from portal.core import clock

LINE_CHOICES: Final = (100, 500, 2000)
LEVELS: Final = (
    (LogLevel.UNKNOWN, "All levels"),
    (LogLevel.INFO, "Info and above"),
    (LogLevel.WARNING, "Warnings and errors"),
    (LogLevel.ERROR, "Errors"),
)
_MOST_SEARCHED: Final = 200
_MOST_EVENTS: Final = 30


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The choice that the query of the page makes: of which pod (empty: all), how many lines, and which of them."""

    pod: str
    lines: int
    level: LogLevel
    search: str
    is_previous: bool

    @classmethod
    def read(cls, query: QueryDict) -> LogQuery:
        """Read the query of the page. What it does not know is the default."""
        lines, level = query.get("lines", ""), query.get("level", "")
        return cls(
            pod=query.get("pod", ""),
            lines=int(lines) if lines in map(str, LINE_CHOICES) else LINE_CHOICES[0],
            level=LogLevel(level) if level in {one.value for one, _ in LEVELS} else LEVELS[0][0],
            search=query.get("q", "")[:_MOST_SEARCHED],
            is_previous=query.get("previous") == "1",
        )

    def to_query(self, **more: str) -> str:
        values = {
            "pod": self.pod,
            "lines": str(self.lines),
            "level": self.level.value,
            "q": self.search,
            "previous": "1" if self.is_previous else "",
            **more,
        }
        return urlencode({name: value for name, value in values.items() if value})

    def choose(self, logs: PodLogs) -> list[LogLine]:
        """Return the lines that pass the filter, at most as many as requested."""
        kept = log_lines.filter_lines(logs.lines, level=self.level, search=self.search)
        return kept[-self.lines :]


def read_logs(user: User, deployment: Deployment, query: LogQuery) -> PodLogs:
    return pod_logs.read_logs(
        actor=user,
        deployment_id=deployment.pk,
        pod=query.pod,
        lines=query.lines,
        is_previous=query.is_previous,
    )


def build_context(query: LogQuery, logs: PodLogs, path: str) -> dict[str, Any]:
    """Return the context of the lines and of the form above them."""
    shown = query.choose(logs)
    names = _shorten_names(logs) if len(logs.names) > 1 else {}
    is_live = bool(logs.names) and not query.is_previous
    return {
        "query": query,
        "pods": logs.pods,
        "line_choices": LINE_CHOICES,
        "levels": LEVELS,
        "has_restarts": query.is_previous or any(pod.restart_count for pod in logs.pods),
        "log": render_lines(shown, names, query.search),
        "shown_lines": len(shown),
        "read_lines": len(logs.lines),
        "is_filtered": bool(query.search or query.level),
        "problems": logs.problems,
        "follow_url": f"{path}?{query.to_query()}" if is_live else "",
        "download_url": f"{path}?{query.to_query(download='1')}",
    }


def build_event_context(user: User, deployment: Deployment, logs: PodLogs) -> dict[str, Any]:
    """Return the events of the pods, which are read with the page and not with each poll."""
    found = pod_logs.list_events(actor=user, deployment_id=deployment.pk, pods=logs.pods)
    names = _shorten_names(logs)
    rows = [{**asdict(event), "short": names[event.pod]} for event in found.events]
    return {
        "pod_events": rows[:_MOST_EVENTS],
        "more_events": max(len(rows) - _MOST_EVENTS, 0),
        "events_problem": found.problem,
    }


def _shorten_names(logs: PodLogs) -> dict[str, str]:
    return log_lines.shorten_names([pod.name for pod in logs.pods])


def render_lines(lines: Iterable[LogLine], names: Mapping[str, str], search: str) -> SafeString:
    """Render lines, each with its pod's short name from `names`. A template takes long for some thousand."""
    return mark_safe("".join(_render_line(line, names, search) for line in lines))  # noqa: S308  escaped below


def respond_with_file(deployment: Deployment, query: LogQuery, logs: PodLogs) -> HttpResponse:
    """Return the shown lines as a file, each with its time, and its pod where there are several."""
    has_several = len(logs.names) > 1
    text = "".join(
        [
            *(f"# {problem}\n" for problem in logs.problems),
            *(_write_line(line, has_several=has_several) for line in query.choose(logs)),
        ]
    )
    name = f"{query.pod or deployment.name}-{clock.now():%Y%m%d-%H%M%S}.log"
    return HttpResponse(
        text,
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _write_line(line: LogLine, *, has_several: bool) -> str:
    time = f"{line.at:%Y-%m-%dT%H:%M:%S.%f}Z " if line.at else ""
    pod = f"{line.pod} " if has_several else ""
    return f"{time}{pod}{line.text}\n"


def _render_line(line: LogLine, names: Mapping[str, str], search: str) -> str:
    parts: Sequence[str] = [
        f"<mark>{escape(text)}</mark>" if is_match else escape(text)
        for text, is_match in log_lines.split_matches(line.text, search)
    ]
    # Triton logs tables that are padded to 200 columns: a wrapped row of these cannot be read.
    kind = " grid" if line.text.startswith(("|", "+-")) else ""
    time = f' title="{line.at:%Y-%m-%d %H:%M:%S} UTC"' if line.at else ""
    short = names.get(line.pod)
    pod = f'<b title="{escape(line.pod)}">{escape(short)}</b> ' if short else ""
    return f'<span class="{line.level.value}{kind}"{time}>{pod}{"".join(parts)}</span>\n'
