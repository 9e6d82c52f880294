"""The stand-in answers and refuses with the codes and words of the real vLLM, which `make test-engines` holds to the
same contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.engines import contract
from tests.engines.contract import REFUSALS, Refusal
from tests.localcluster.test_language_server_end import running_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    options = ("--served-model-name=chat", "--max-model-len=512", "--lora-modules", "sql=org/sql")
    with running_server("/mnt/models", *options) as (_, address):
        yield address


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_it_refuses_with_the_words_of_vllm(url: str, refusal: Refusal) -> None:
    contract.check_refusal(url, refusal)


@pytest.mark.parametrize(
    "check",
    [
        contract.check_answers,
        contract.check_models,
        contract.check_adapter,
        contract.check_stream,
        contract.check_metrics,
        contract.check_missing_paths,
    ],
)
def test_it_answers_as_the_contract_says(url: str, check: Callable[[str], None]) -> None:
    check(url)
