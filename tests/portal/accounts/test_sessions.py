"""A person's own sessions: what they say, and how they end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache
from django.test import Client

from portal.accounts.local import devices, sessions
from portal.accounts.local.models import BrowserSession
from portal.accounts.models import User
from portal.core import clock
from tests.accounts import events_besides_sign_ins
from tests.page import page

pytestmark = pytest.mark.django_db
PASSWORD = "two brown otters swim"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture(autouse=True)
def ana() -> User:
    cache.clear()
    return User.objects.create_user("ana", "ana@example.org", PASSWORD)


def sign_in(username: str = "ana", *, agent: str = FIREFOX, address: str = "10.0.0.7") -> Client:
    browser = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    browser.post("/sign-in", {"username": username, "password": PASSWORD})
    return browser


def is_signed_in(browser: Client) -> bool:
    return browser.get("/session").status_code == 200


def test_the_page_lists_where_one_is_signed_in(ana: User) -> None:
    phone = sign_in(agent="Mozilla/5.0 (iPhone) Version/18 Safari/604.1", address="10.0.0.8")
    browser = sign_in()
    User.objects.create_user("ben", password=PASSWORD)
    sign_in("ben", address="10.0.0.9")

    shown = page(browser.get("/account/security"))

    first, second = shown.rows
    assert (first[""], first["IP address"]) == ("This browser", "10.0.0.7")
    assert (second["IP address"], "10.0.0.9" in shown.text) == ("10.0.0.8", False)
    assert "Firefox on Linux with password" in shown.text
    assert "Safari on iPhone with password" in shown.text
    keys = [store.session.session_key or "" for store in (phone, browser)]
    assert not any(key in browser.get("/account/security").content.decode() for key in keys)


def test_one_session_ends_and_then_all_others(ana: User) -> None:
    browser, phone, tablet, laptop = (sign_in() for _ in range(4))
    names = {
        row.name for row in sessions.list_sessions(ana, current_key=phone.session.session_key)[:1]
    }

    answer = browser.post(f"/account/sessions/{names.pop()}/end")

    assert answer.status_code == 302
    assert [is_signed_in(one) for one in (browser, phone, tablet)] == [True, False, True]
    browser.post("/account/sessions/end-others")
    assert [is_signed_in(one) for one in (browser, tablet, laptop)] == [True, False, False]
    assert list(events_besides_sign_ins().values_list("action", "after")) == [
        ("session.ended", {"sessions": 1}),
        ("session.ended", {"sessions": 2}),
    ]


def test_nobody_ends_the_session_of_another(ana: User) -> None:
    User.objects.create_user("ben", password=PASSWORD)
    hers, his = sign_in(), sign_in("ben")
    (row,) = sessions.list_sessions(ana, current_key=None)

    assert his.post(f"/account/sessions/{row.name}/end").status_code == 404
    his.post("/account/sessions/end-others")

    assert is_signed_in(hers)
    assert not events_besides_sign_ins().exists()


def test_an_ended_session_is_not_written_back_by_a_request_that_was_under_way(ana: User) -> None:
    browser = sign_in()
    store = browser.session
    store["team"] = "vision"
    BrowserSession.objects.all().delete()

    with pytest.raises(UpdateError):
        store.save()

    assert not BrowserSession.objects.exists()


def test_the_last_use_is_written_every_five_minutes(ana: User) -> None:
    browser = sign_in()
    start = BrowserSession.objects.get().last_seen_at

    with time_machine.travel(start + timedelta(minutes=4)):
        browser.get("/session")
    assert BrowserSession.objects.get().last_seen_at == start
    with time_machine.travel(start + timedelta(minutes=6), tick=False):
        browser.get("/session")
        now = clock.now()
    row = BrowserSession.objects.get()
    assert (row.last_seen_at, row.began_at < now) == (now, True)


def test_expired_sessions_are_forgotten_at_the_next_sign_in(ana: User) -> None:
    sign_in()
    BrowserSession.objects.update(expire_date=clock.now() - timedelta(seconds=1))

    sign_in()

    assert BrowserSession.objects.count() == 1


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 16) Chrome/140 Mobile Safari/537", "Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 15) Version/18 Safari/605", "Safari on macOS"),
        ("curl/8.5.0", "curl"),
        ("(Windows)", "A browser on Windows"),
        ("<script>", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_devices_in_words(agent: str, words: str) -> None:
    assert devices.describe(agent) == words


def test_a_session_that_nobody_used_ends_and_its_row_with_it(ana: User, settings: Any) -> None:
    settings.SLIPWAY_SESSION_IDLE_MINUTES = 120
    with time_machine.travel(clock.now(), tick=False) as traveller:
        browser, idle = sign_in(), sign_in()
        traveller.shift(timedelta(minutes=119))
        assert is_signed_in(browser)
        traveller.shift(timedelta(minutes=1))

        assert not is_signed_in(idle)

        assert is_signed_in(browser)
        assert BrowserSession.objects.count() == 1


def test_what_a_page_asks_for_while_nobody_touches_it_is_no_use(ana: User, settings: Any) -> None:
    settings.SLIPWAY_SESSION_IDLE_MINUTES = 60
    with time_machine.travel(clock.now(), tick=False) as traveller:
        browser = sign_in()
        for minutes, status in ((30, 200), (29, 200), (1, 401)):
            traveller.shift(timedelta(minutes=minutes))
            answer = browser.get("/session", headers={"Slipway-Unattended": "1"})
            assert answer.status_code == status


def test_without_a_limit_an_unused_session_lasts_its_hours(ana: User, settings: Any) -> None:
    settings.SLIPWAY_SESSION_IDLE_MINUTES = 0
    with time_machine.travel(clock.now(), tick=False) as traveller:
        browser = sign_in()
        traveller.shift(timedelta(hours=11, minutes=59))
        assert is_signed_in(browser)
