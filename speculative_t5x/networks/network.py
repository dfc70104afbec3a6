# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the package asks of an architecture, and its use as a model of the loop.

Legend: examples, rows (sequences decoded together), block (positions per call),
vocab.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts

# Parameters by names such as 'decoder/logits_dense/kernel'.
Leaves = Iterable[tuple[str, jax.Array]]


class Network(Protocol):
  """An architecture with its sizes: frozen and hashable, without parameters.

  Inputs are token ids, [examples, inputs_length] int32, with
  `contracts.NO_TOKEN` where there is none.

  Some networks offer more, which is asked for where it is needed. In decoding,
  `encode(params, inputs)` returns the features of `start` alone, and
  `shorten_head(params, ids)` restricts the logits to some tokens, whose number
  is then its `head_size`; `width_of_inputs` is the width of the features that
  `start` takes. Training needs
  `score(params, inputs, outputs, dropout_key=None, features=None)`. It
  returns the logits [examples, outputs_length, vocab] float32 of each token of
  the outputs, which has the tokens before it as context, the first one those of
  `special_ids.start`. Drafts that share more with the target are made by

    features(params, inputs)  those of `start`, in training, for `score`
    on_features(width)        the network that reads such features
    first_layers(count)       the network that ends after some layers
    cut(params, ...)          a smaller network and its parameters

  Attributes:
    name: Names the architecture in errors.
    vocab_size: Width of the logits.
    dtype: Dtype of the activations.
    special_ids: Special ids where the checkpoint states none.
    reads_features: Whether `start` needs the features of another network.
    axis_units: How many units an axis of the parameters has that is not cut
      within a unit, by the name of the axis.
  """

  name: ClassVar[str]
  vocab_size: int
  dtype: Any
  special_ids: ClassVar[contracts.SpecialIds]

  @property
  def reads_features(self) -> bool: ...

  @property
  def axis_units(self) -> Mapping[str, int]: ...

  def init(self, key: jax.Array) -> contracts.Params:
    """Return random parameters under the names of its checkpoints."""

  def axes(self) -> Any:
    """Return the names of each parameter's axes, in a tree like `init`'s."""

  def prepared(self, platform: str, merged: bool) -> 'Network':
    """Return the form to decode with, which takes what `prepare` yields.

    Args:
      platform: JAX's name of the platform to decode on, for example 'tpu'.
      merged: Whether kernels that share an input become one, as on one device.
    """

  def prepare(self, leaves: Leaves, merged: bool) -> Leaves:
    """Prepare named parameters one at a time, and hold as few as possible."""

  def start(
      self,
      params: contracts.Params,
      inputs: contracts.Inputs,
      rows: int,
      slots: int,
      features: Any = None,
  ) -> contracts.Started:
    """Read the inputs; see `contracts.Model.start`.

    Without a first token of its own it returns None for `first_tokens`: rows
    then begin with the start id.
    """

  def decode(
      self,
      params: contracts.Params,
      memory: contracts.Memory,
      cache: contracts.Cache,
      tokens: jax.Array,
      positions: jax.Array,
      at: jax.Array | None,
  ) -> tuple[jax.Array, contracts.Cache]:
    """Decode a block; see `contracts.Model.decode`."""


@dataclasses.dataclass(frozen=True)
class NetworkModel:
  """A network with special ids: a `contracts.Model`.

  Attributes:
    network: The network.
    special_ids: Special ids of the vocabulary.
    num_valid_tokens: Ids from this one on, the padding of the vocabulary, get
      logit -inf; None lets them be sampled, as T5X does.
    forbidden: Further ids that get logit -inf.
  """

  network: Network
  special_ids: contracts.SpecialIds
  num_valid_tokens: int | None = None
  forbidden: tuple[int, ...] = ()

  @property
  def vocab_size(self) -> int:
    """Width of the logits."""
    return self.network.vocab_size

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    started = self.network.start(params, inputs, rows, slots, features)
    if started.first_tokens is not None:
      return started
    first = jnp.full((rows,), self.special_ids.start, jnp.int32)
    return started._replace(first_tokens=first)

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    logits, cache = self.network.decode(
        params, memory, cache, tokens, positions, at
    )
    ids = jnp.arange(self.vocab_size)
    if self.num_valid_tokens is not None:
      logits = jnp.where(ids < self.num_valid_tokens, logits, -jnp.inf)
    for each in self.forbidden:
      logits = jnp.where(ids != each, logits, -jnp.inf)
    return logits, cache


def check_offers(network: Network, name: str, asks: str) -> None:
  """Check that a network has an optional method, for the sake of what `asks`.

  Raises:
    ValueError: naming both.
  """
  if not hasattr(network, name):
    raise ValueError(
        f'{asks} needs a network with `{name}`, which {network.name} does not'
        ' have. Choose another one, or add the method: see'
        ' networks.network.Network.'
    )


def features_width(network: Network) -> int:
  """Return the width of the features that a network computes of its inputs.

  Raises:
    ValueError: if it computes none.
  """
  params = jax.eval_shape(network.init, jax.random.key(0))
  inputs = jax.ShapeDtypeStruct((1, 1), jnp.int32)
  start = lambda params, inputs: network.start(params, inputs, 1, 1).features
  if (features := jax.eval_shape(start, params, inputs)) is None:
    raise ValueError(
        'A draft on the encoder of a target needs a network whose `start`'
        f' returns features, which that of {network.name} does not. Choose'
        ' another drafter or target.'
    )
  return features.shape[-1]
