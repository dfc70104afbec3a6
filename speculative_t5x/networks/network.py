# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Networks as the package knows them, and their use as models of the loop.

Legend: examples, rows (sequences decoded together), block (positions per call),
vocab.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# Parameters by names such as 'decoder/logits_dense/kernel'.
Leaves = Iterable[tuple[str, jax.Array]]


class Network(contracts.Model, Protocol):
  """An architecture with its sizes: frozen and hashable, without parameters.

  Inputs are token ids, [examples, inputs_length] int32, with
  `contracts.NO_TOKEN` where there is none. Without a first token of its own,
  `start` returns None for `first_tokens`: rows then begin with the start id.

  What only some networks offer is named below.

  Attributes:
    name: Names the architecture in errors.
    dtype: Dtype of the activations.
    special_ids: Special ids where the checkpoint states none.
    reads_features: Whether `start` needs the features of another network.
    ends_inputs: Whether an input ends with the end of sequence, as one that an
      encoder reads does. A decoder alone goes on where its input ends.
    axis_units: How many units an axis of the parameters has that is not cut
      within a unit, by the name of the axis.
  """

  name: ClassVar[str]
  dtype: Any
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


# Names of the methods and attributes of optional parts, which are documented in
# `transformer_network` and `variants`. A network that can be trained; it may
# have a field `dropout_rate`.
SCORES = ('score',)
# One whose last features a head may read, or such a head, whose own are its
# prediction of the target's.
SHOWS_FEATURES = (
    'start_with_features', 'decode_with_features', 'score_with_features',
    'last_width', 'feature_dim', 'on_last_features', 'head_of_shapes',
)  # fmt: skip
# One that decodes trees: see `contracts.DecodesTrees`.
DECODES_TREES = (
    'share_rows', 'separate_rows', 'new_block', 'decode_tree', 'commit',
)  # fmt: skip
# One whose first layers draft, and one that may have a head of its own there.
LAYERS = (
    'first_layers', 'decoder_alone', 'take_first_layers', 'put_first_layers',
)  # fmt: skip
HEADS = 'with_own_head', 'take_head', 'put_head'
# One whose decoder is fed several ids before an output's first token. They are
# the checkpoint's, or empty until a caller has chosen a language.
PROMPTS_DECODER = 'decoder_prompt', 'with_decoder_prompt'


class Scored(NamedTuple):
  """Given outputs as a network reads them, for training of heads on it.

  Attributes:
    logits: [..., outputs_length, vocab] float32.
    features: [..., outputs_length, width]. Last features of the positions of
      the logits.
    all_features: [..., positions, width]. Those of all positions that the
      decoder is fed, which are a prompt's too in a decoder alone.
  """

  logits: jax.Array
  features: jax.Array
  all_features: jax.Array


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

  def follow(self, params, state, tokens, read) -> tuple[jax.Array, jax.Array]:
    return self.network.follow(params, state, tokens, read)

  def _allowed(self, logits: jax.Array) -> jax.Array:
    """Return the logits, -inf of what must not be sampled."""
    if self.num_valid_tokens is not None:
      ids = jnp.arange(self.vocab_size)
      logits = jnp.where(ids < self.num_valid_tokens, logits, -jnp.inf)
    return contracts.mask(logits, self.special_ids.forbidden)


def has_encoder(network: Network) -> bool:
  """Return whether a network has an encoder whose features others may read.

  Its `encoder` is not None then. It has `encode(params, inputs)`, the features
  of `start`; `features(params, inputs)`, the same with a gradient; and
  `on_features(width)`, the decoder alone on features of a width, which its
  `width_of_inputs` is.
  """
  return getattr(network, 'encoder', None) is not None


def is_feature_head(network: Network) -> bool:
  """Return whether a network is a head on the last features of a target."""
  return getattr(network, 'feature_dim', None) is not None


def is_block_head(network: Network) -> bool:
  """Return whether a network drafts several tokens per call, by masks."""
  return bool(getattr(network, 'num_masks', 0))


def one_later(features: jax.Array) -> jax.Array:
  """Return features of the position before each, [..., positions, width].

  They are zeros before the first.
  """
  missing = [(0, 0)] * (features.ndim - 2) + [(1, 0), (0, 0)]
  return jnp.pad(features[..., :-1, :], missing)


def offers(network: Network, *names: str) -> bool:
  """Return whether a network has all methods of an optional part."""
  return all(hasattr(network, name) for name in names)


def check_offers(network: Network, asks: str, *names: str) -> None:
  """Check that a network has an optional part, for the sake of what `asks`.

  Raises:
    ValueError: naming all that is missing.
  """
  missing = [f'`{x}`' for x in names if not hasattr(network, x)]
  if missing:
    name = getattr(network, 'name', type(network).__name__)
    raise ValueError(
        f'{asks} needs a network with {", ".join(missing)}, which'
        f' {name} does not have. Choose another one, or add what is missing:'
        ' see networks.network.'
    )


def check_positions(
    network: Network, inputs_length: int, max_tokens: int
) -> None:
  """Check that a network has the positions of an input and its output.

  Raises:
    ValueError: naming both lengths.
  """
  if (most := getattr(network, 'max_positions', None)) is None:
    return
  needed = network.num_positions(inputs_length, max_tokens)
  if needed > most:
    raise ranges.ArgumentError(
        f'inputs_length {inputs_length} and max_tokens {max_tokens} need'
        f' {needed} positions, and the target has {most}. Make'
        ' the decoder for shorter ones.',
        inputs_length=inputs_length,
        max_tokens=max_tokens,
    )


def check_decoder_prompt(network: Network) -> None:
  """Check that nothing of what a network's decoder begins with is missing.

  Raises:
    ValueError: naming the argument that chooses it.
  """
  if offers(network, *PROMPTS_DECODER) and not network.decoder_prompt:
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
