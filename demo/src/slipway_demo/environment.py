"""The environment variables of every part, set before Django is imported."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping

from slipway_demo.ports import Ports
from slipway_demo.state import BUCKET, Folder, Secrets

_OURS = ("SLIPWAY_", "AWS_", "DJANGO_", "KUBE", "GUNICORN_", "MOTO_")
# What the caller may add to the demo.
_PASSED_ON = ("SLIPWAY_IMPORT_MLFLOW",)
_LOCAL = "127.0.0.1,localhost"


def variables(folder: Folder, secrets: Secrets, ports: Ports) -> dict[str, str]:
    """Return the variables. They are also written to demo.env, for running manage.py next to the demo."""
    s3_url = f"http://127.0.0.1:{ports.s3}"
    return {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SLIPWAY_DEMO": "1",
        "SLIPWAY_PORT": str(ports.web),
        "SLIPWAY_PUBLIC_URL": f"http://127.0.0.1:{ports.web}",
        "SLIPWAY_SECRET_KEY": secrets.secret_key,
        "SLIPWAY_DATABASE_URL": f"sqlite://{folder.root / 'slipway.sqlite3'}",
        "SLIPWAY_REDIS_URL": f"redis://127.0.0.1:{ports.valkey}/0",
        "SLIPWAY_BATCH_QUEUES": "127.0.0.1:*",
        "SLIPWAY_S3_BUCKET": BUCKET,
        "SLIPWAY_S3_ENDPOINT_URL": s3_url,
        "SLIPWAY_S3_BROWSER_ENDPOINT_URL": s3_url,
        "SLIPWAY_STATIC_ROOT": str(folder.root / "staticfiles"),
        "SLIPWAY_ALLOWED_HOSTS": _LOCAL,
        "AWS_ACCESS_KEY_ID": secrets.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": secrets.s3_secret_key,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SLIPWAY_LOAD_TEST_COMMAND": f"{shlex.quote(sys.executable)} -m slipway_localcluster.load_test",
        "SLIPWAY_CLUSTER_CREDENTIALS_DIR": str(folder.kubeconfig.parent),
        "KUBECONFIG": str(folder.kubeconfig),
    }


def build_child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment with the demo's variables in place of conflicting ones. The MLflow servers to
    import from are the caller's.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PASSED_ON) or not name.startswith(_OURS)
    }
    for name in ("NO_PROXY", "no_proxy"):
        inherited[name] = ",".join(filter(None, [inherited.get(name), _LOCAL]))
    return {**inherited, "PYTHONUNBUFFERED": "1", **ours}
