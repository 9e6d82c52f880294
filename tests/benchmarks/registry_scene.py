"""20,000 versions of 200 models of one team, and a member who may read and create."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployments.models import Model, ModelVersion
    from portal.accounts.models import User

MODELS = 200
VERSIONS_EACH = 100
_README = "# Detector\n\nFinds defects on photos of a line. Trained by the vision team. " * 20


@dataclass(frozen=True, slots=True)
class Prepared:
    token: str
    session: str


def prepare() -> Prepared:
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.db import connection

    from portal.accounts import tokens
    from portal.accounts.local.session_store import SessionStore
    from tests.accounts import make_membership, make_team, make_user

    member = make_user(username="member")
    make_membership(user=member, team=make_team(slug="bench"), role="member")
    make_membership(user=member, team=make_team(slug="other"), role="member")
    _create(member)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    session = SessionStore()
    session[SESSION_KEY] = str(member.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = member.get_session_auth_hash()
    session.create()
    token = tokens.create(actor=member, name="bench", days=1, scopes=["upload"])
    return Prepared(token=token.plain, session=str(session.session_key))


def _create(member: User) -> None:
    from deployments.models import Model, ModelVersion
    from portal.accounts.models import Team
    from portal.core import clock

    at, team = clock.now(), Team.objects.get(slug="bench")
    models = Model.objects.bulk_create(
        Model(
            team=team,
            name=f"model-{number}",
            description="Finds defects on photos",
            task="object detection" if number % 3 else "classification",
            created_by=member,
            created_at=at,
            changed_at=at,
        )
        for number in range(MODELS)
    )
    versions = ModelVersion.objects.bulk_create(
        (_version(model, number, member) for model in models for number in range(1, 101)),
        batch_size=1000,
    )
    _index(versions)


def _index(versions: Sequence[ModelVersion]) -> None:
    """What search_index.write leaves of each, at once."""
    from django.db import connection

    from deployments.models import VersionDocument, VersionLabel, VersionMetric
    from deployments.registry.selectors.version_search import TEXT_CONFIGURATION
    from deployments.registry.services import search_index

    VersionDocument.objects.bulk_create(
        (VersionDocument(version=v, text=search_index.text_of(v)) for v in versions),
        batch_size=1000,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE deployments_versiondocument d SET vector = to_tsvector(%s, d.text || v.readme) "
            "FROM deployments_modelversion v WHERE v.id = d.version_id",
            [TEXT_CONFIGURATION],
        )
    VersionMetric.objects.bulk_create(
        (
            VersionMetric(version=v, name=name.lower(), value=value)
            for v in versions
            for name, value in v.metadata["metrics"].items()
        ),
        batch_size=5000,
    )
    VersionLabel.objects.bulk_create(
        (
            VersionLabel(version=v, key=key, value=value)
            for v in versions
            for key, value in v.metadata["labels"].items()
        ),
        batch_size=5000,
    )


def _version(model: Model, number: int, member: User) -> ModelVersion:
    from deployments.models import ModelVersion
    from portal.core import clock

    at = clock.now()
    return ModelVersion(
        model=model,
        number=number,
        state="archived" if number % 10 == 0 else "ready",
        source_uri=f"hf://organisation/m{number}:{number:040x}",
        declared_size_bytes=0,
        metadata={
            "metrics": {"mAP": 0.3 + number % 50 / 100, "latency_ms": 3 + number % 7},
            "labels": {
                "precision": "int8" if number // 12 % 4 == 0 else "fp16",
                "line": f"l{number % 9}",
            },
            "dataset_version": f"2026-{number % 12 + 1:02}",
        },
        readme=_README,
        created_by=member,
        created_at=at,
        ready_at=at,
    )
