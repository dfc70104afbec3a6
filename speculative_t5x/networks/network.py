# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Networks as the package knows them, and their use as models of the loop.

Legend: examples, rows (sequences decoded together), block (positions per call),
vocab.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# Parameters by names such as 'decoder/logits_dense/kernel'.
Leaves = Iterable[tuple[str, jax.Array]]


class Network(Protocol):
  """An architecture with its sizes: frozen and hashable, without parameters.

  Inputs are token ids, [examples, inputs_length] int32, with
  `contracts.NO_TOKEN` where there is none.

  What only some networks offer is a Protocol of its own, below.

  Attributes:
    name: Names the architecture in errors.
    vocab_size: Width of the logits.
    dtype: Dtype of the activations.
    special_ids: Special ids where the checkpoint states none.
    reads_features: Whether `start` needs the features of another network.
    ends_inputs: Whether an input ends with the end of sequence, as one that an
      encoder reads does. A decoder alone goes on where its input ends.
    axis_units: How many units an axis of the parameters has that is not cut
      within a unit, by the name of the axis.
  """

  name: ClassVar[str]
  vocab_size: int
  dtype: Any
  special_ids: ClassVar[contracts.SpecialIds]
  ends_inputs: ClassVar[bool]

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


class Encodes(Protocol):
  """A network with an encoder, whose features a decoder alone may read.

  Once that does, its `width_of_inputs` is their width.
  """

  def encode(self, params: contracts.Params, inputs: jax.Array) -> jax.Array:
    """Return the features of `start` alone, for several uses of them."""

  def features(self, params: contracts.Params, inputs: jax.Array) -> jax.Array:
    """Return the features of `start`, with a gradient, for `score`."""

  def on_features(self, width: int) -> Network:
    """Return the decoder alone, which reads features of a width."""


class Scores(Protocol):
  """A network that can be trained.

  It may have a field `dropout_rate`, the rate of dropout in training.
  """

  def score(
      self,
      params: contracts.Params,
      inputs: jax.Array,
      outputs: jax.Array,
      dropout_key: jax.Array | None = None,
      features: Any = None,
  ) -> jax.Array:
    """Return the logits of given outputs, [..., outputs_length, vocab] float32.

    Each token has the tokens before it as context, the first one those of
    `start`.
    """


class Scored(NamedTuple):
  """Given outputs as a network reads them, for training of heads on it.

  Attributes:
    logits: [..., outputs_length, vocab] float32, see `Scores`.
    features: [..., outputs_length, width]. Last features of the positions of
      the logits.
    all_features: [..., positions, width]. Those of all positions that the
      decoder is fed, which are a prompt's too in a decoder alone.
  """

  logits: jax.Array
  features: jax.Array
  all_features: jax.Array


class ShowsFeatures(contracts.ShowsFeatures, Protocol):
  """A network whose last features a head may read, or such a head.

  Those of a head on a target are its prediction of the target's.
  """

  @property
  def last_width(self) -> int:
    """Width of the features."""

  @property
  def feature_dim(self) -> int | None:
    """Width of the target's features; None for a network that is not a head."""

  def score_with_features(
      self,
      params: contracts.Params,
      inputs: jax.Array,
      outputs: jax.Array,
      dropout_key: jax.Array | None = None,
      features: Any = None,
      fed: jax.Array | None = None,
  ) -> Scored:
    """Read given outputs as `Scores.score` does.

    A head is fed `fed`, [..., positions, width], at all positions of the
    decoder; see `contracts.ShowsFeatures`.
    """

  def on_last_features(self, target: Network) -> Network:
    """Return the head on a target, of this network's sizes."""

  def head_of_shapes(
      self, shapes: Mapping[str, tuple[int, ...]]
  ) -> Network | None:
    """Return the head on the target's last features, of a checkpoint's shapes.

    They are by names such as 'decoder/logits_dense/kernel'. A name that a head
    needs raises KeyError if it is missing. None where shapes say all of a head,
    and its parts are not the target's.
    """


class Shrinks(Protocol):
  """A network out of which smaller ones can be cut, with its parameters."""

  def first_layers(self, count: int) -> Network:
    """Return the network that ends after some layers, with its parameters."""

  def decoder_alone(self) -> Network:
    """Return the part that decodes, as a checkpoint holds it, to be counted."""

  def take_first_layers(
      self, memory: contracts.Memory, cache: contracts.Cache
  ) -> tuple[contracts.Memory, contracts.Cache]:
    """Return what this reads of a deeper network's memory and cache."""

  def put_first_layers(
      self, cache: contracts.Cache, whole: contracts.Cache
  ) -> contracts.Cache:
    """Return a deeper network's cache with these layers' in their places."""

  def with_own_head(self) -> Network:
    """Return the network whose head is stored, also where it was tied."""

  def take_head(self, params: contracts.Params) -> contracts.Params:
    """Return the parameters of the head, a tree like `init`'s."""

  def put_head(
      self, params: contracts.Params, head: contracts.Params
  ) -> contracts.Params:
    """Return the parameters with another head, as one for an inner layer."""

  def shorten_head(
      self, params: contracts.Params, ids: np.ndarray
  ) -> tuple[Network, contracts.Params]:
    """Return the prepared network with logits of some tokens alone.

    Their number is then its `head_size`.
    """

  def cut(
      self, params: contracts.Params, **sizes: Any
  ) -> tuple[Network, contracts.Params]:
    """Return a smaller network to be trained, and its parameters."""


# Methods of `Shrinks` that early exit needs, and those for a head of its own.
LAYERS = (
    'first_layers', 'decoder_alone', 'take_first_layers', 'put_first_layers'
)  # fmt: skip
HEADS = 'with_own_head', 'take_head', 'put_head'


class LimitsPositions(Protocol):
  """A network whose positions may have an end."""

  @property
  def max_positions(self) -> int | None:
    """Number of positions; None without an end."""

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """Return how many an input and an output of these lengths need."""


class PromptsDecoder(Protocol):
  """A network whose decoder is fed several ids before an output's first token.

  The checkpoint states them, or a caller chooses a language.
  """

  @property
  def decoder_prompt(self) -> tuple[int, ...]:
    """The ids; empty if they are still to be chosen."""

  def with_decoder_prompt(self, ids: Sequence[int]) -> Network:
    """Return the network with others."""


# A network that decodes trees: as a model does, which masks its logits.
DecodesTrees = contracts.DecodesTrees


@dataclasses.dataclass(frozen=True)
class NetworkModel:
  """A network with special ids: a `contracts.Model`.

  Attributes:
    network: The network.
    special_ids: Special ids of the vocabulary.
    num_valid_tokens: Ids from this one on, the padding of the vocabulary, get
      logit -inf; None lets them be sampled, as T5X does.
  """

  network: Network
  special_ids: contracts.SpecialIds
  num_valid_tokens: int | None = None

  @property
  def vocab_size(self) -> int:
    """Width of the logits."""
    return self.network.vocab_size

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    return self._with_first_tokens(
        self.network.start(params, inputs, rows, slots, features)
    )

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    check_offers(
        self.network, contracts.ShowsFeatures, 'A head on last features'
    )
    return self._with_first_tokens(
        self.network.start_with_features(params, inputs, rows, slots, features)
    )

  def _with_first_tokens(self, started: contracts.Started) -> contracts.Started:
    if started.first_tokens is not None:
      return started
    rows = started.offsets.shape
    first = jnp.full(rows, self.special_ids.start, jnp.int32)
    return started._replace(first_tokens=first)

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    logits, cache = self.network.decode(
        params, memory, cache, tokens, positions, at
    )
    return self._allowed(logits), cache

  def share_rows(self, cache, examples) -> contracts.Cache:
    return self.network.share_rows(cache, examples)

  def separate_rows(self, cache) -> contracts.Cache:
    return self.network.separate_rows(cache)

  def new_block(self, cache, examples, nodes) -> Any:
    check_offers(self.network, DecodesTrees, 'A tree of draft tokens')
    return self.network.new_block(cache, examples, nodes)

  def decode_tree(
      self, params, memory, cache, block, nodes, first, count, num_cached
  ) -> tuple[jax.Array, Any]:
    logits, block = self.network.decode_tree(
        params, memory, cache, block, nodes, first, count, num_cached
    )
    return self._allowed(logits), block

  def commit(self, cache, block, rows, paths, num_cached) -> contracts.Cache:
    return self.network.commit(cache, block, rows, paths, num_cached)

  def decode_with_features(
      self, params, memory, cache, tokens, positions, at, fed=None
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    logits, cache, features = self.network.decode_with_features(
        params, memory, cache, tokens, positions, at, fed
    )
    return self._allowed(logits), cache, features

  def _allowed(self, logits: jax.Array) -> jax.Array:
    """Return the logits, -inf of what must not be sampled."""
    if self.num_valid_tokens is not None:
      ids = jnp.arange(self.vocab_size)
      logits = jnp.where(ids < self.num_valid_tokens, logits, -jnp.inf)
    return contracts.mask(logits, self.special_ids.forbidden)


def is_feature_head(network: Network) -> bool:
  """Return whether a network is a head on the last features of a target."""
  return getattr(network, 'feature_dim', None) is not None


def one_later(features: jax.Array) -> jax.Array:
  """Return features of the position before each, [..., positions, width].

  They are zeros before the first.
  """
  missing = [(0, 0)] * (features.ndim - 2) + [(1, 0), (0, 0)]
  return jnp.pad(features[..., :-1, :], missing)


def offers(network: Network, protocol: type, *names: str) -> bool:
  """Return whether a network has an optional part, or methods of one."""
  return not _missing(network, names or _methods(protocol))


def check_offers(
    network: Network, protocol: type, asks: str, *names: str
) -> None:
  """Check that a network has an optional part, for the sake of what `asks`.

  Args:
    network: The network.
    protocol: The part, as `Shrinks`.
    asks: What needs it.
    *names: Its methods that are needed; none for all.
  Raises:
    ValueError: naming all that is missing.
  """
  if missing := _missing(network, names or _methods(protocol)):
    raise ValueError(
        f'{asks} needs a network with {", ".join(missing)}, which'
        f' {network.name} does not have. Choose another one, or add what is'
        f' missing: see networks.network.{protocol.__name__}.'
    )


def _methods(protocol: type) -> list[str]:
  return [
      name
      for each in reversed(protocol.__mro__)
      for name in vars(each)
      if not name.startswith('_')
  ]


def _missing(network: Network, names: Iterable[str]) -> list[str]:
  return [f'`{name}`' for name in names if not hasattr(network, name)]


def check_positions(
    network: Network, inputs_length: int, max_tokens: int
) -> None:
  """Check that a network has the positions of an input and its output.

  Raises:
    ValueError: naming both lengths.
  """
  if not offers(network, LimitsPositions) or network.max_positions is None:
    return
  needed = network.num_positions(inputs_length, max_tokens)
  if needed > network.max_positions:
    raise ranges.ArgumentError(
        f'inputs_length {inputs_length} and max_tokens {max_tokens} need'
        f' {needed} positions, and the target has {network.max_positions}. Make'
        ' the decoder for shorter ones.',
        inputs_length=inputs_length,
        max_tokens=max_tokens,
    )


def check_decoder_prompt(network: Network) -> None:
  """Check that nothing of what a network's decoder begins with is missing.

  Raises:
    ValueError: naming the argument that chooses it.
  """
  if offers(network, PromptsDecoder) and not network.decoder_prompt:
    raise ranges.ArgumentError(
        'languages are not given, and the decoder of the target begins with the'
        " language of its output. Give languages=('<source>', '<target>') by"
        ' the names that the vocabulary has, or write the forced_bos_token_id'
        ' of the target language into generation_config.json.',
        languages=None,
    )


def num_forced(network: Network) -> int:
  """Return how many ids a network's decoder is fed after its start id."""
  prompt = getattr(network, 'decoder_prompt', ())
  return max(len(prompt) - 1, 0)


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
