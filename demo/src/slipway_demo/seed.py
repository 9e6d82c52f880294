"""Seed the demo: two teams, an account per role, prices, the local cluster, a cost history.

Every step can run at every start and leaves existing data unchanged. Import after django.setup().
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.migrations import Migration

from fleet.clusters.selectors import clusters as registered
from fleet.clusters.services import clusters
from fleet.costs.services import demo_history
from fleet.kube.domain.errors import ClusterError
from fleet.observation.services import sweep
from fleet.prices.services import catalogue as prices
from portal.accounts import teams
from portal.accounts.models import Membership, Team, User
from portal.accounts.policy import SYSTEM
from portal.core import clock
from portal.core.schema import history as migration_history
from slipway_demo import people, probes

_LONGEST_WAIT_SECONDS = 60
_PAUSE_SECONDS = 0.2
_pause = time.sleep


def migrate(record: Path) -> None:
    """Migrate the database. Exits with a message if it was made by migrations that no longer exist, or that have
    changed since. `record` is the file with the digests of those that made it.
    """
    files = migration_history.read_files()
    digests = {f"{app}.{name}": _digest_of(migration) for (app, name), migration in files.items()}
    recorded = json.loads(record.read_text()) if record.is_file() else {}
    applied = migration_history.add_replacing(files, migration_history.read_recorded(connection))
    names = [f"{app}.{name}" for app, name in applied]
    if any(name not in digests or digests[name] != recorded.get(name) for name in names):
        sys.exit(
            "The data in var/ was created by an older Slipway. Run make demo-reset, then make demo."
        )
    record.write_text(json.dumps(digests, indent=1, sort_keys=True))
    call_command("migrate", interactive=False, verbosity=0)


def _digest_of(migration: type[Migration]) -> str:
    """Return the digest of the migration's whole file: the SQL of triggers is beside the class."""
    return hashlib.sha256(inspect.getsource(sys.modules[migration.__module__]).encode()).hexdigest()


def seed(*, passwords: Mapping[str, str], kubeconfig: Path, gateway_url: str) -> None:
    for name in people.ROLES:
        _ensure_user(name, passwords[name])
    for slug in people.TEAMS:
        _ensure_team(slug)
    prices.load_catalogue(actor=SYSTEM)
    draft = clusters.ClusterDraft(
        name="local", kind="local", gateway_url=gateway_url, kubeconfig_path=str(kubeconfig)
    )
    cluster_id = clusters.register(actor=SYSTEM, draft=draft)
    demo_history.create(cluster_id=cluster_id, until=clock.now())


def prepare_bucket(*, s3_url: str, origins: Sequence[str]) -> None:
    """Wait for the S3 server, then set up the bucket."""
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while not probes.answers(f"{s3_url}/_health") and time.monotonic() < deadline:
        _pause(_PAUSE_SECONDS)
    named = [f"--origin={origin}" for origin in origins]
    call_command("bucket_setup", *named, stdout=io.StringIO())


def observe_cluster() -> None:
    """Observe the cluster once all parts are up: nobody is refused a request because what the cluster has is
    unknown yet.

    Raises ClusterError if it does not answer within a minute.
    """
    (cluster_id,) = [one.id for one in registered.list_clusters() if one.kind == "local"]
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        try:
            sweep.observe_now(cluster_id=cluster_id)
        except ClusterError:
            if time.monotonic() > deadline:
                raise
            _pause(_PAUSE_SECONDS)
            continue
        return


def _ensure_user(name: str, password: str) -> None:
    if not User.objects.filter(username=name).exists():
        User.objects.create_user(
            username=name, password=password, is_platform_admin=name == people.ADMIN
        )


def _ensure_team(slug: str) -> None:
    name, quota_gpus, budget = people.TEAMS[slug]
    team = Team.objects.filter(slug=slug).first() or teams.create(
        actor=SYSTEM, slug=slug, name=name, quota_gpus=quota_gpus, monthly_budget_amount=budget
    )
    for username, role in people.MEMBERS[slug].items():
        if not Membership.objects.filter(team=team, user__username=username).exists():
            teams.set_member(actor=SYSTEM, team=team, username=username, role=role)
