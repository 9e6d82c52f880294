"""Notification channels of a team or user: add, choose events, test, remove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import teams
from portal.accounts.models import Team, User
from portal.core.errors import DomainError
from portal.notifications import addresses, channels, events
from portal.notifications.models import Channel, ChannelKind
from portal.ui.access import people_only
from portal.ui.form_errors import add_to

_EVENTS = [(event.code, event.phrase) for event in events.CATALOGUE]


class ChannelForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="How it appears in Slipway.")
    kind = forms.ChoiceField(choices=ChannelKind.choices)
    address = forms.CharField(
        max_length=2000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        kept = "Stored encrypted and never shown again."
        with_mail = "Slack or Teams webhook, https:// URL or e-mail address."
        without = (
            "Slack or Teams webhook, or https:// URL. This portal sends no e-mail: a platform admin can "
            "set SLIPWAY_SMTP_URL."
        )
        self.fields[
            "address"
        ].help_text = f"{with_mail if addresses.can_send_mail() else without} {kept}"


class SubscriptionForm(forms.Form):
    events = forms.MultipleChoiceField(choices=_EVENTS, required=False)
    is_on = forms.BooleanField(required=False)


@dataclass(frozen=True, slots=True)
class EventChoice:
    code: str
    phrase: str
    is_subscribed: bool


@dataclass(frozen=True, slots=True)
class ChannelItem:
    channel: Channel
    choices: tuple[EventChoice, ...]

    @property
    def events_text(self) -> str:
        subscribed = sum(choice.is_subscribed for choice in self.choices)
        if subscribed == len(self.choices):
            return "all events"
        return f"{subscribed} of {len(self.choices)} events"


@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def team_channels_page(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    rows = channels.list_of_team(actor=user, team=team)
    return _page(request, user, team, rows)


@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def person_channels_page(request: HttpRequest, user: User) -> HttpResponse:
    return _page(request, user, None, channels.list_of_person(user))


@require_POST
@people_only
def change(request: HttpRequest, user: User, channel_id: int) -> HttpResponse:
    channel = channels.get_own(actor=user, channel_id=channel_id)
    form = SubscriptionForm(request.POST)
    codes = form.cleaned_data["events"] if form.is_valid() else []
    is_all = len(codes) == len(_EVENTS)
    channels.subscribe(
        actor=user,
        channel_id=channel_id,
        event_codes=[] if is_all else codes,
        is_on=bool(codes) and "is_on" in request.POST,
    )
    messages.success(request, f"Channel “{channel.name}” saved.")
    return redirect(_home_of(channel))


@require_POST
@people_only
def try_out(request: HttpRequest, user: User, channel_id: int) -> HttpResponse:
    channel = channels.get_own(actor=user, channel_id=channel_id)
    channels.try_out(actor=user, channel_id=channel_id, path=_home_of(channel))
    messages.success(request, "Sending a test message. The result appears here.")
    return redirect(_home_of(channel))


@require_POST
@people_only
def remove(request: HttpRequest, user: User, channel_id: int) -> HttpResponse:
    channel = channels.get_own(actor=user, channel_id=channel_id)
    channels.remove(actor=user, channel_id=channel_id)
    messages.success(request, f"Channel “{channel.name}” and its address deleted.")
    return redirect(_home_of(channel))


def _page(request: HttpRequest, user: User, team: Team | None, rows: list[Channel]) -> HttpResponse:
    form = ChannelForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid() and (added := _add(form, user, team)) is not None:
        messages.success(request, f"Channel “{added.name}” added. Send a test to check it.")
        return redirect(_home_of(added))
    context: dict[str, Any] = {
        "team": team,
        "items": [_item(row) for row in rows],
        "form": form,
    }
    return render(request, "dashboard/channels.html", context, status=422 if form.errors else 200)


def _add(form: ChannelForm, user: User, team: Team | None) -> Channel | None:
    try:
        return channels.add(actor=user, team=team, **form.cleaned_data)
    except DomainError as error:
        add_to(form, error)
        return None


def _item(channel: Channel) -> ChannelItem:
    subscribed = channel.events
    choices = (
        EventChoice(code, phrase, not subscribed or code in subscribed) for code, phrase in _EVENTS
    )
    return ChannelItem(channel, tuple(choices))


def _home_of(channel: Channel) -> str:
    if channel.team is not None:
        return reverse("team-channels", kwargs={"slug": channel.team.slug})
    return reverse("my-channels")
