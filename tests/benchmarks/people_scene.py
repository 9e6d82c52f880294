"""A portal of 500 people: 20 teams, 4,000 versions, 600 deployments, 100 nodes, two weeks of ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portal.accounts.models import User


TEAMS, PEOPLE, NOTEBOOKS = 20, 500, 100
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@dataclass(frozen=True, slots=True)
class Person:
    """`names`: a team of theirs and a deployment of it."""

    session: str
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    people: list[Person]
    tokens: list[str]


def prepare() -> Prepared:
    from deployments.models import Deployment
    from portal.accounts.models import Membership, Team, User
    from tests.benchmarks import fleet_scene
    from tests.benchmarks.costs import renew_sums

    size = fleet_scene.Size(
        teams=TEAMS, versions=4_000, deployments=600, nodes=100, days=14, hours=4
    )
    fleet_scene.build(size)
    renew_sums()
    users = User.objects.bulk_create(User(username=f"person-{n}") for n in range(PEOPLE))
    teams = {team.slug: team for team in Team.objects.all()}
    Membership.objects.bulk_create(
        Membership(
            user=user, team=teams[f"team-{n % TEAMS}"], role="lead" if n < TEAMS else "member"
        )
        for n, user in enumerate(users)
    )
    deployments: dict[str, list[str]] = {}
    for slug, name in Deployment.objects.order_by("pk").values_list("team__slug", "name"):
        deployments.setdefault(slug, []).append(name)
    people = [_person(user, f"team-{n % TEAMS}", n, deployments) for n, user in enumerate(users)]
    return Prepared(people, [_token(user) for user in users[:NOTEBOOKS]])


def _person(user: User, team: str, number: int, deployments: Mapping[str, list[str]]) -> Person:
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    from portal.accounts.local.session_store import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = _BACKEND
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    own = deployments[team]
    return Person(
        str(session.session_key), {"team": team, "deployment": own[number // TEAMS % len(own)]}
    )


def _token(user: User) -> str:
    from portal.accounts import tokens

    return tokens.create(actor=user, name="notebook", days=1, scopes=["read", "upload"]).plain


def lost(written: Mapping[str, str]) -> int:
    """How many acknowledged versions are missing, there twice, or have other metadata."""
    from deployments.models import ModelVersion

    stored: dict[str, list[str]] = {}
    rows = ModelVersion.objects.filter(source_uri__in=list(written))
    for source, metadata in rows.values_list("source_uri", "metadata"):
        stored.setdefault(source, []).append(metadata.get("notes", ""))
    return sum(stored.get(source) != [notes] for source, notes in written.items())
