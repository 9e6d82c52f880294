"""Runs in MLflow's environment: registers models of several flavors at MLFLOW_TRACKING_URI.

The last line of its output is JSON: what the tests expect back.
"""

from __future__ import annotations

import json

import mlflow
import numpy as np
import onnx
import xgboost
from mlflow.models import infer_signature
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import RandomForestClassifier

random = np.random.default_rng(7)
rows = random.random((20, 64), dtype=np.float32)
classes = (rows[:, 0] > 0.5).astype(np.int32)


def matrix() -> onnx.ModelProto:
    """Of 16 KiB, so that MLflow puts its weights into a file beside the graph."""
    weights = numpy_helper.from_array(random.random((64, 64), dtype=np.float32), "weights")
    sizes = ["n", 64]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weights"], ["y"])],
        "matrix",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        [weights],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


mlflow.set_experiment("boxes")
with mlflow.start_run(run_name="first try") as run:
    mlflow.log_params({"depth": 3, "lr": 0.1, "very long": "x" * 400})
    mlflow.log_metrics({"mAP": 0.5, "val loss": 0.25})
    mlflow.set_tags({"stage": "gold", "mlflow.source.git.commit": "c0ffee" * 6 + "c0ff"})
    mlflow.log_input(mlflow.data.from_numpy(rows, name="train"))
    mlflow.onnx.log_model(
        matrix(),
        name="matrix",
        registered_model_name="Boxes 2",
        pip_requirements=[],
        signature=infer_signature(rows, rows),
        input_example=rows[:2],
    )
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(rows, classes), 3)
    mlflow.xgboost.log_model(
        booster, name="trees", registered_model_name="trees", pip_requirements=[]
    )
    mlflow.sklearn.log_model(
        RandomForestClassifier(3, random_state=7).fit(rows, classes),
        name="forest",
        registered_model_name="forest",
        pip_requirements=[],
        serialization_format="cloudpickle",
    )

client = mlflow.MlflowClient()
client.set_registered_model_alias("Boxes 2", "champion", "1")
client.update_model_version("Boxes 2", "1", description="# Boxes\n\nFinds boxes.")
client.set_model_version_tag("Boxes 2", "1", "reviewed", "yes")
scores = booster.predict(xgboost.DMatrix(rows[:4]))
print(
    json.dumps(
        {
            "run_id": run.info.run_id,
            "experiment_id": run.info.experiment_id,
            "rows": rows[:4].tolist(),
            "scores": scores.tolist(),
        }
    )
)
