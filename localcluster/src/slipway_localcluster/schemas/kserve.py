"""Schemas of KServe's kinds, composed of Kubernetes' own pods and containers and KServe's fields.

From KServe's reference of v0.20. With SLIPWAY_CRD_DIR the published ones are used.
"""

import functools

from slipway_localcluster.schemas.built_in import read_annotation, schema_of_model
from slipway_localcluster.schemas.schema import (
    ANYTHING,
    BOOLEAN,
    TEXT,
    Part,
    Schema,
    choice,
    define_closed,
    define_open,
    list_of,
    map_of,
    number,
    text,
)

_TEXTS = map_of(TEXT)
_FORMAT = define_closed({"name": TEXT, "version": TEXT}, "name")
_STORAGE_URIS = list_of(
    define_closed({"uri": text(least=1), "mountPath": text("^/.*", most=255)}, "uri"), least=1
)
_CONFIDENTIAL = define_closed({"enabled": BOOLEAN, "resourceId": TEXT}, "enabled")
# Frameworks of the first API: each is a container with a place for the model.
_FRAMEWORKS = (
    "sklearn",
    "xgboost",
    "tensorflow",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
)
_COMPONENT: dict[str, Part] = {
    "minReplicas": number(),
    "maxReplicas": number(),
    "scaleTarget": number(),
    "scaleMetric": choice("cpu", "memory", "concurrency", "rps"),
    "scaleMetricType": choice("Utilization", "AverageValue"),
    "autoScaling": define_open(),
    "containerConcurrency": number(),
    "timeout": number(),
    "canaryTrafficPercent": number(),
    "logger": define_open(),
    "batcher": define_open(),
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "deploymentStrategy": define_open(),
}
_RUNTIME_POD = (
    "containers",
    "volumes",
    "nodeSelector",
    "affinity",
    "tolerations",
    "imagePullSecrets",
    "hostIPC",
    "schedulerName",
)


@functools.cache
def inference_service_spec() -> Schema:
    component = {**_fields("V1PodSpec"), **_COMPONENT, "storageUris": _STORAGE_URIS}
    artifact = {"storageUri": TEXT, "runtimeVersion": TEXT, "protocolVersion": TEXT}
    extension = {
        **_fields("V1Container"),
        **artifact,
        "storage": define_open(),
        "confidential": _CONFIDENTIAL,
    }
    model = define_closed({**extension, "modelFormat": _FORMAT, "runtime": TEXT})
    framework = define_closed(extension)
    predictor = {
        **component,
        "model": model,
        **dict.fromkeys(_FRAMEWORKS, framework),
        "storageContainerName": TEXT,
        "workerSpec": _worker(_fields("V1PodSpec")),
    }
    fields = {
        "predictor": define_closed(predictor),
        "transformer": define_closed(component),
        "explainer": define_closed({**component, "art": framework}),
        "canary": ANYTHING,
    }
    return define_closed(fields, "predictor")


@functools.cache
def serving_runtime_spec() -> Schema:
    every = _fields("V1PodSpec")
    pod = {
        **{name: every[name] for name in _RUNTIME_POD},
        "labels": _TEXTS,
        "annotations": _TEXTS,
    }
    supported = define_closed(
        {
            "name": TEXT,
            "version": TEXT,
            "autoSelect": BOOLEAN,
            "priority": number(1),
        },
        "name",
    )
    fields = {
        **pod,
        "supportedModelFormats": list_of(supported),
        "multiModel": BOOLEAN,
        "disabled": BOOLEAN,
        "protocolVersions": list_of(TEXT),
        "workerSpec": _worker(pod, "containers"),
        "grpcEndpoint": TEXT,
        "grpcDataEndpoint": TEXT,
        "httpDataEndpoint": TEXT,
        "replicas": number(0, 65535),
        "storageHelper": define_open(),
        "builtInAdapter": define_open(),
    }
    return define_closed(fields, "containers")


def _worker(pod: dict[str, Part], *required: str) -> Schema:
    sizes = dict.fromkeys(("pipelineParallelSize", "tensorParallelSize", "size"), number())
    return define_closed({**pod, **sizes}, *required)


def _fields(model_name: str) -> dict[str, Part]:
    schema = schema_of_model(model_name)
    return dict(schema.fields) if schema else {"containers": read_annotation("List[V1Container]")}
