"""A decoder-only transformer with random weights: real attention and a real KV cache, no knowledge.

Tokens are the bytes of UTF-8. Only printable ASCII is generated, so that each token is text.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

END = 256
_VOCABULARY = 257
_WIDTH, _HEADS, _LAYERS, _HIDDEN = 64, 4, 2, 128
_HEAD_WIDTH = _WIDTH // _HEADS
_PRINTABLE = (*range(0x20, 0x7F), END)


@dataclass(frozen=True, slots=True)
class _Layer:
    query_key_value: Array
    output: Array
    up: Array
    down: Array


class Cache:
    """Keys and values of one sequence, by layer: shape (heads, tokens, head width)."""

    def __init__(self) -> None:
        empty = np.zeros((_HEADS, 0, _HEAD_WIDTH), np.float32)
        self.layers: list[tuple[Array, Array]] = [(empty, empty)] * _LAYERS

    @property
    def length(self) -> int:
        return int(self.layers[0][0].shape[1])


class Network:
    """The same name gives the same weights. Safe on many threads."""

    def __init__(self, name: str) -> None:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        random = np.random.default_rng(seed)

        def weights(*shape: int) -> Array:
            values: Array = random.standard_normal(shape, np.float32)
            return values / np.float32(np.sqrt(shape[0]))

        self._embedding: Array = random.standard_normal((_VOCABULARY, _WIDTH), np.float32)
        self._layers = [
            _Layer(
                weights(_WIDTH, 3 * _WIDTH),
                weights(_WIDTH, _WIDTH),
                weights(_WIDTH, _HIDDEN),
                weights(_HIDDEN, _WIDTH),
            )
            for _ in range(_LAYERS)
        ]
        self._mask = np.full(_VOCABULARY, -np.inf, np.float32)
        self._mask[list(_PRINTABLE)] = 0

    def logits(self, tokens: list[int], cache: Cache) -> Array:
        """Return the scores of the token after `tokens`, which are appended to the cache."""
        start = cache.length
        states = self._embedding[tokens] + _positions(start, len(tokens))
        for index, layer in enumerate(self._layers):
            states = states + self._attend(layer, _normal(states), cache, index, start)
            states = states + np.maximum(_normal(states) @ layer.up, 0) @ layer.down
        scores: Array = _normal(states[-1]) @ self._embedding.T / np.float32(np.sqrt(_WIDTH))
        return scores + self._mask

    def _attend(self, layer: _Layer, states: Array, cache: Cache, index: int, start: int) -> Array:
        count = states.shape[0]
        mixed = (states @ layer.query_key_value).reshape(count, 3, _HEADS, _HEAD_WIDTH)
        query, key, value = mixed.transpose(1, 2, 0, 3)
        keys, values = (
            np.concatenate(pair, axis=1)
            for pair in zip(cache.layers[index], (key, value), strict=True)
        )
        cache.layers[index] = (keys, values)
        scores = query @ keys.transpose(0, 2, 1) / np.float32(np.sqrt(_HEAD_WIDTH))
        is_later = np.arange(keys.shape[1]) > (start + np.arange(count))[:, None]
        attention = _softmax(np.where(is_later, np.float32(-np.inf), scores))
        attended: Array = (attention @ values).transpose(1, 0, 2).reshape(count, _WIDTH)
        return attended @ layer.output


def sample(logits: Array, temperature: float, random: np.random.Generator) -> int:
    if temperature <= 0:
        return int(logits.argmax())
    chances = _softmax(logits / np.float32(temperature)).astype(np.float64)
    return int(random.choice(_VOCABULARY, p=chances / chances.sum()))


def _positions(start: int, count: int) -> Array:
    places = np.arange(start, start + count)[:, None]
    rates = 10_000.0 ** (-np.arange(0, _WIDTH, 2) / _WIDTH)
    angles = places * rates
    encoded: Array = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    return encoded


def _normal(states: Array) -> Array:
    scaled: Array = states / (np.abs(states).max(axis=-1, keepdims=True) + np.float32(1e-6))
    return scaled


def _softmax(scores: Array) -> Array:
    raised: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    chances: Array = raised / raised.sum(axis=-1, keepdims=True)
    return chances
