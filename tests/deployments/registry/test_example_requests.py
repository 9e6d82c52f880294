"""The first request that “Try it” offers."""

from deployments.registry.domain import example_requests
from deployments.registry.domain.signatures import Signature, Tensor


def test_the_first_request_has_the_shapes_that_the_server_takes() -> None:
    signature = Signature(
        inputs=(
            Tensor("x", "FP32", (-1, 3)),
            Tensor("age", "INT64", (-1,)),
            Tensor("text", "STRING", (-1, 1)),
        ),
        outputs=(),
        max_batch_size=8,
    )

    assert example_requests.infer_request(signature) == {
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [0, 0, 0]},
            {"name": "age", "datatype": "INT64", "shape": [1, 1], "data": [0]},
            {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [""]},
        ]
    }


def test_an_input_too_large_for_a_browser_is_left_to_be_filled_in() -> None:
    large = Tensor("image", "FP32", (1, 3, 224, 224))

    (one,) = example_requests.infer_request(Signature((large,), ()))["inputs"]

    assert one == {"name": "image", "datatype": "FP32", "shape": [1, 3, 224, 224], "data": []}
