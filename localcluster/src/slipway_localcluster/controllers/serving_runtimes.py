"""Chooses the serving runtime of an InferenceService and merges both into a pod: pure."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway_localcluster.errors import JsonObject

CONTAINER = "kserve-container"
INITIALIZER = "storage-initializer"
MODELS_DIRECTORY = "/mnt/models"
_INITIALIZER_IMAGE = "kserve/storage-initializer:v0.20.0"
_VOLUME = "kserve-provision-location"
# Fields of `predictor` that are KServe's own; the others are a PodSpec.
_EXTENSION_FIELDS = {
    "model", "minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType",
    "autoScaling", "containerConcurrency", "timeout", "canaryTrafficPercent", "logger", "batcher",
    "labels", "annotations", "deploymentStrategy", "workerSpec", "storageUris",
    "storageContainerName", "name", "containers", "resources",
}  # fmt: skip
_MODEL_FIELDS = {
    "modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storage",
    "confidential", "name", "args", "env", "resources", "ports", "volumeMounts",
}  # fmt: skip
_RUNTIME_POD_FIELDS = (
    "nodeSelector", "affinity", "tolerations", "imagePullSecrets", "hostIPC", "schedulerName",
    "volumes",
)  # fmt: skip
_PLACEHOLDER = re.compile(r"\{\{\s*\.(Name|Namespace|Labels\.([\w./-]+))\s*\}\}")


class InvalidPredictor(Exception):
    """The predictor cannot be served; `reason` is one of KServe's failure reasons."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Runtime:
    """A ServingRuntime or a ClusterServingRuntime."""

    name: str
    is_cluster_wide: bool
    spec: JsonObject


def choose(
    model: JsonObject, namespaced: Sequence[JsonObject], cluster_wide: Sequence[JsonObject]
) -> Runtime:
    """Choose the named runtime, or the best one with `autoSelect`. Raises InvalidPredictor."""
    candidates = [
        Runtime(item["metadata"]["name"], is_cluster_wide, item["spec"])
        for is_cluster_wide, items in ((False, namespaced), (True, cluster_wide))
        for item in items
    ]
    name = model.get("runtime")
    if name:
        return _named(str(name), model, candidates)
    fitting = [item for item in candidates if _supports(item, model, needs_auto_select=True)]
    if not fitting:
        form = model["modelFormat"]["name"]
        raise InvalidPredictor(
            "NoSupportingRuntime", f"No runtime found to support the model format {form!r}."
        )
    return min(fitting, key=lambda item: (item.is_cluster_wide, -_priority(item, model), item.name))


def _named(name: str, model: JsonObject, candidates: Sequence[Runtime]) -> Runtime:
    runtime = next((item for item in candidates if item.name == name), None)
    if runtime is None:
        raise InvalidPredictor("RuntimeNotRecognized", f"The runtime {name!r} does not exist.")
    if runtime.spec.get("disabled"):
        raise InvalidPredictor("RuntimeDisabled", f"The runtime {name!r} is disabled.")
    if not _supports(runtime, model, needs_auto_select=False):
        form = model["modelFormat"]
        version = f" {form['version']}" if form.get("version") else ""
        raise InvalidPredictor(
            "NoSupportingRuntime",
            f"The runtime {name!r} does not support the model format {form['name']}{version}.",
        )
    return runtime


def _supports(runtime: Runtime, model: JsonObject, *, needs_auto_select: bool) -> bool:
    if runtime.spec.get("disabled"):
        return False
    protocols = runtime.spec.get("protocolVersions")
    protocol = model.get("protocolVersion") or "v2"
    if protocols and protocol not in protocols:
        return False
    formats = _formats(runtime, model)
    return any(item.get("autoSelect") or not needs_auto_select for item in formats)


def _formats(runtime: Runtime, model: JsonObject) -> list[JsonObject]:
    requested = model["modelFormat"]
    return [
        item
        for item in runtime.spec.get("supportedModelFormats") or ()
        if item["name"] == requested["name"]
        and requested.get("version") in (None, "", item.get("version"))
    ]


def _priority(runtime: Runtime, model: JsonObject) -> int:
    return max((int(item.get("priority") or 0) for item in _formats(runtime, model)), default=0)


def pod_spec(service: JsonObject, runtime: Runtime) -> JsonObject:
    """Return the runtime's pod with the predictor merged over it, and the storage initializer."""
    predictor = service["spec"]["predictor"]
    model = predictor["model"]
    spec = {name: runtime.spec[name] for name in _RUNTIME_POD_FIELDS if name in runtime.spec}
    spec |= {name: item for name, item in predictor.items() if name not in _EXTENSION_FIELDS}
    base = next((x for x in runtime.spec["containers"] if x["name"] == CONTAINER), None)
    if base is None:
        raise InvalidPredictor(
            "InvalidPredictorSpec", f"The runtime {runtime.name!r} has no {CONTAINER}."
        )
    container = _merge_container(base, model, service["metadata"])
    others = [item for item in runtime.spec["containers"] if item is not base]
    spec["containers"] = [container, *others, *(predictor.get("containers") or ())]
    sources = _sources(predictor)
    own = {item["name"] for item in spec.get("initContainers") or ()}
    # KServe leaves a pod as it is that has an init container of this name.
    if sources and INITIALIZER not in own:
        _add_initializer(spec, container, sources)
    return spec


def _sources(predictor: JsonObject) -> list[tuple[str, str]]:
    """Return the model's `storageUri`, or the predictor's `storageUris`: KServe's webhook refuses both."""
    uri, sources = predictor["model"].get("storageUri"), predictor.get("storageUris") or ()
    if uri and sources:
        raise InvalidPredictor(
            "InvalidPredictorSpec", "storageUri and storageUris exclude each other."
        )
    if uri:
        return [(str(uri), MODELS_DIRECTORY)]
    return [
        (str(source["uri"]), str(source.get("mountPath") or MODELS_DIRECTORY)) for source in sources
    ]


def _merge_container(base: JsonObject, model: JsonObject, metadata: JsonObject) -> JsonObject:
    """Merge the model's fields over the runtime's. Its arguments follow the runtime's."""
    merged = {**base, **{k: item for k, item in model.items() if k not in _MODEL_FIELDS}}
    merged["name"] = CONTAINER
    arguments = [*(base.get("args") or ()), *(model.get("args") or ())]
    merged["args"] = [_fill(str(item), metadata) for item in arguments]
    for field, key in (("env", "name"), ("ports", "containerPort"), ("volumeMounts", "mountPath")):
        items = _merge_lists(base.get(field), model.get(field), key)
        if items:
            merged[field] = items
    merged["resources"] = _merge_resources(base.get("resources"), model.get("resources"))
    version = model.get("runtimeVersion")
    if version and "image" in base:
        merged["image"] = f"{base['image'].rpartition(':')[0]}:{version}"
    return merged


def _fill(argument: str, metadata: JsonObject) -> str:
    labels: Mapping[str, str] = metadata.get("labels") or {}
    known = {"Name": metadata["name"], "Namespace": metadata["namespace"]}
    return _PLACEHOLDER.sub(
        lambda match: labels.get(match[2], "") if match[2] else known[match[1]], argument
    )


def _merge_lists(
    base: Sequence[JsonObject] | None, over: Sequence[JsonObject] | None, key: str
) -> list[JsonObject]:
    merged = {item[key]: item for item in base or ()}
    for item in over or ():
        merged[item[key]] = {**merged.get(item[key], {}), **item}
    return list(merged.values())


def _merge_resources(base: JsonObject | None, over: JsonObject | None) -> JsonObject:
    return {
        part: {**((base or {}).get(part) or {}), **((over or {}).get(part) or {})}
        for part in ("requests", "limits")
    }


def _add_initializer(
    spec: JsonObject, container: JsonObject, sources: Sequence[tuple[str, str]]
) -> None:
    """Add one volume at the common parent directory of all targets, as KServe does."""
    directory = posixpath.commonpath([path for _, path in sources])
    mount = {"name": _VOLUME, "mountPath": directory}
    initializer = {
        "name": INITIALIZER,
        "image": _INITIALIZER_IMAGE,
        "args": [part for pair in sources for part in pair],
        "volumeMounts": [mount],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec["initContainers"] = [initializer, *(spec.get("initContainers") or ())]
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": _VOLUME, "emptyDir": {}}]
    mounts = container.get("volumeMounts") or ()
    container["volumeMounts"] = [*mounts, {**mount, "readOnly": True}]
