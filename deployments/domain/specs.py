"""The serving spec of a revision: what runs, on which share of a GPU, how many times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from deployments.domain.problems import Rejected

SCHEMA: Final = 1
KSERVE_TRITON: Final = "kserve-triton"
TRITON: Final = "triton"
ENGINES: Final = (KSERVE_TRITON, TRITON)
WHOLE_GPU: Final = "nvidia.com/gpu"

_MOST_GPUS = 16
_MOST_REPLICAS = 100
_CPU = re.compile(r"[1-9][0-9]*m?")
_MEMORY = re.compile(r"[1-9][0-9]*(Mi|Gi)")
_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb(\.me)?)")
_INSTANCE_TYPE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,38}[a-z0-9])?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
# LD_, PYTHON and PATH say whose code the server loads (KServe's webhook refuses PYTHONPATH too);
# the AWS names belong to the service account.
_REFUSED_ENV = ("AWS_", "GLIBC_", "LD_", "PATH", "PYTHON", "STORAGE_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpec:
    """Raises Rejected for what no cluster would run. `env` is sorted by name."""

    engine: str
    instance_type: str
    gpu_resource: str = WHOLE_GPU
    gpus: int = 1
    min_replicas: int = 1
    max_replicas: int = 1
    cpu: str = "2"
    memory: str = "8Gi"
    env: tuple[tuple[str, str], ...] = ()
    # The server image, pinned by the portal when the revision is asked for, so that a new default
    # image never restarts what was approved with another one.
    image: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        found = {**_wrong_kinds(self)} or {**_wrong_values(self), **_wrong_env(self.env)}
        if found:
            raise Rejected("Check " + ", ".join(sorted(found)) + ".", found)
        object.__setattr__(self, "env", tuple(sorted(self.env)))

    @property
    def most_gpus(self) -> int:
        """GPUs (or shares) taken when scaled out fully; quotas count these."""
        return self.gpus * self.max_replicas

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "env": dict(self.env)}


def from_json(data: Mapping[str, Any]) -> ServingSpec:
    """Raises Rejected for unknown or missing fields and for a schema of a later portal."""
    known = {field.name for field in fields(ServingSpec)}
    unknown = {
        name: f"There is no field {name!r}; leave it out." for name in data if name not in known
    }
    missing = {name: f"State {name}." for name in ("engine", "instance_type") if not data.get(name)}
    if unknown or missing:
        found = unknown | missing
        raise Rejected("Check " + ", ".join(sorted(found)) + " of the spec.", found)
    env = data.get("env", {})
    if not isinstance(env, Mapping):
        raise Rejected("env must map names to values.", {"env": 'for example {"NAME": "value"}'})
    return ServingSpec(**{**data, "env": tuple((str(k), str(v)) for k, v in env.items())})


def _wrong_kinds(spec: ServingSpec) -> dict[str, str]:
    numbers = ("gpus", "min_replicas", "max_replicas", "schema")
    texts = ("engine", "instance_type", "gpu_resource", "cpu", "memory", "image")
    found = {}
    for name in numbers:
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int):
            found[name] = f"{value!r} is not a whole number; Kubernetes takes whole numbers only."
    for name in texts:
        if not isinstance(getattr(spec, name), str):
            found[name] = "must be text"
    return found


def _wrong_values(spec: ServingSpec) -> dict[str, str]:
    rules = (
        ("schema", spec.schema == SCHEMA, f"This portal writes spec schema {SCHEMA}."),
        ("engine", spec.engine in ENGINES, f"Use one of {', '.join(ENGINES)}."),
        (
            "instance_type",
            bool(_INSTANCE_TYPE.fullmatch(spec.instance_type)),
            "Name an instance type of the cluster, for example g5.xlarge.",
        ),
        (
            "gpu_resource",
            bool(_GPU_RESOURCE.fullmatch(spec.gpu_resource)),
            "Use nvidia.com/gpu, nvidia.com/gpu.shared or nvidia.com/mig-1g.10gb.",
        ),
        ("cpu", bool(_CPU.fullmatch(spec.cpu)), "Use whole cores or millicores: 2 or 1500m."),
        ("memory", bool(_MEMORY.fullmatch(spec.memory)), "Use Mi or Gi: 8Gi or 512Mi."),
    )
    found = {name: fix for name, is_right, fix in rules if not is_right}
    return found | _wrong_counts(spec)


def _wrong_counts(spec: ServingSpec) -> dict[str, str]:
    found = {}
    most = _MOST_GPUS if spec.gpu_resource == WHOLE_GPU else 1
    if not 1 <= spec.gpus <= most:
        found["gpus"] = f"Use 1 to {most} of {spec.gpu_resource} per replica."
    if not 1 <= spec.min_replicas <= _MOST_REPLICAS:
        found["min_replicas"] = f"Use 1 to {_MOST_REPLICAS} replicas."
    if not spec.min_replicas <= spec.max_replicas <= _MOST_REPLICAS:
        found["max_replicas"] = (
            f"Use at least min_replicas ({spec.min_replicas}) and at most {_MOST_REPLICAS}."
        )
    elif spec.engine == TRITON and spec.min_replicas != spec.max_replicas:
        found["max_replicas"] = (
            "Plain Triton runs a fixed number of replicas: set max_replicas equal to min_replicas, "
            f"or choose {KSERVE_TRITON} for autoscaling."
        )
    return found


def _wrong_env(env: tuple[tuple[str, str], ...]) -> dict[str, str]:
    for name, _ in env:
        if _ENV_NAME.fullmatch(name) is None:
            return {"env": f"{name!r} cannot name a variable; use letters, digits and '_'."}
        if name.startswith(_REFUSED_ENV):
            return {"env": f"{name} is set by the platform; leave it out."}
    return {}
