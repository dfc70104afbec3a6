# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and vocabularies read from disk, checked before they are used."""

import dataclasses
import functools
from typing import Any

from etils import epath
from flax import core
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import sentencepiece

from speculative_t5x import checkpoints
from speculative_t5x import seam
from speculative_t5x import sharding
from speculative_t5x import speculation
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_sizes

PAD_ID = 0


@dataclasses.dataclass(frozen=True)
class Model:
  """A network and its parameters, ready to decode.

  Attributes:
    config: of the network that `params` fits.
    params: parameters on the device or the mesh, prepared for decoding.
    num_params: parameters in the checkpoint.
    checkpoint: where they came from, or None.
    mesh: that the parameters lie on; None for one device.
    rules: how they lie on it.
  """

  config: t5.T5Config
  params: seam.Params
  num_params: int
  checkpoint: str | None = None
  mesh: jax.sharding.Mesh | None = None
  rules: sharding.Rules = sharding.MODEL_PARALLEL


def read_config(
    checkpoint: checkpoints.Path, dtype: Any = jnp.float32
) -> t5.T5Config:
  """The network of a checkpoint, as it tells it itself; reads no weights.

  Args:
    checkpoint: any that `checkpoints.find` finds.
    dtype: to decode in.
  Returns:
    The sizes that a Hugging Face folder's config.json says, or that the shapes
    of T5X's parameters tell; they do not tell the activations, which are taken
    to be those of T5 1.0 for one input projection and of T5 1.1 for two.
  Raises:
    checkpoints.CheckpointError: if there is no checkpoint, or one of another
      network.
  """
  folder = checkpoints.find(checkpoint)
  if checkpoints.detect(folder) is checkpoints.Layout.HUGGING_FACE:
    sizes = checkpoints.hugging_face.read_config(folder)
    return t5.T5Config(**sizes, dtype=dtype)
  try:
    return t5_sizes.read_config(checkpoints.read_specs(folder), dtype=dtype)
  except t5_sizes.SizesError as error:
    raise checkpoints.CheckpointError(f'{folder}: {error}') from error


def abstract_params(config: t5.T5Config) -> seam.Params:
  """Names and shapes of a network's parameters, without making them."""
  return core.unfreeze(_abstract_variables(config)['params'])


@functools.cache
def _abstract_variables(config: t5.T5Config) -> core.FrozenDict:
  tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
  init = functools.partial(t5.Transformer(config).init, enable_dropout=False)
  return core.freeze(
      jax.eval_shape(init, jax.random.key(0), tokens, tokens, tokens)
  )


def param_shardings(
    config: t5.T5Config,
    mesh: sharding.Mesh,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> seam.Params:
  """Where a network's parameters lie on a mesh.

  What the mesh does not divide stays whole: with 6 heads and a model axis of 4
  every device holds all of the attention. Heads are never cut apart, though
  their number times their width might be divisible.

  Args:
    config: of the network.
    mesh: with axes data and model.
    rules: for the axes that the network names.
  Returns:
    A tree of `jax.sharding.NamedSharding` like `abstract_params`.
  """
  variables = _abstract_variables(config)
  axes = core.unfreeze(partitioning.get_axis_names(variables['params_axes']))

  def place(param, names):
    shape = [
        config.num_heads if name == 'joined_kv' else size
        for name, size in zip(names, param.shape, strict=True)
    ]
    return sharding.named_sharding(mesh, rules, names, shape)

  return jax.tree.map(place, core.unfreeze(variables['params']), axes)


def make_model(
    config: t5.T5Config,
    params: seam.Params,
    checkpoint: str | None = None,
    *,
    mesh: jax.sharding.Mesh | None = None,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> Model:
  """A model from parameters at hand, under T5X's names.

  Args:
    config: sizes of the network.
    params: its parameter tree.
    checkpoint: where it came from, or None.
    mesh: to put it on; None for one device.
    rules: how it lies on the mesh.
  """
  num_params = sum(x.size for x in jax.tree.leaves(params))
  config, params = preparation.prepare(config, params)
  if mesh is None:
    config, params = preparation.merge(config, params)
  else:
    params = jax.device_put(params, param_shardings(config, mesh, rules))
  return Model(config, params, num_params, checkpoint, mesh, rules)


def load_model(
    config: t5.T5Config,
    checkpoint: checkpoints.Path,
    *,
    mesh: jax.sharding.Mesh | None = None,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> Model:
  """Loads a checkpoint in the network's dtype.

  Args:
    config: sizes of the network; they must be the checkpoint's.
    checkpoint: any that `checkpoints.find` finds.
    mesh: to read it onto, each device its own part; None for one device.
    rules: how it lies on the mesh.
  Raises:
    checkpoints.CheckpointError: see `checkpoints.restore_params`.
  """
  params = checkpoints.restore_params(
      checkpoint,
      abstract_params(config),
      config.dtype,
      None if mesh is None else param_shardings(config, mesh, rules),
  )
  found = str(checkpoints.find(checkpoint))
  return make_model(config, params, found, mesh=mesh, rules=rules)


class VocabularyError(ValueError):
  """A vocabulary that is missing, not T5's, or too wide for a model."""


def load_vocabulary(
    path: checkpoints.Path,
) -> sentencepiece.SentencePieceProcessor:
  """Reads a SentencePiece model with T5's special ids (pad 0, end 1).

  Raises:
    VocabularyError: if it is missing, unreadable or has other special ids.
  """
  path = epath.Path(path)
  if not path.is_file():
    raise VocabularyError(
        f'There is no vocabulary at {path}. Pass a SentencePiece .model file.'
    )
  try:
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_proto=path.read_bytes()
    )
  except RuntimeError as error:
    raise VocabularyError(
        f'{path} is not a SentencePiece model: {error}'
    ) from error
  check_special_ids(str(path), vocabulary.pad_id(), vocabulary.eos_id())
  return vocabulary


def check_special_ids(name: str, pad_id: int, eos_id: int) -> None:
  """Checks that padding and end of sequence have the ids that T5 decodes by.

  Raises:
    VocabularyError: if they do not.
  """
  if (pad_id, eos_id) != (PAD_ID, speculation.EOS_ID):
    raise VocabularyError(
        f'The vocabulary {name} has pad id {pad_id} and end-of-sequence id'
        f' {eos_id}; T5 needs {PAD_ID} and {speculation.EOS_ID}. Train the'
        ' vocabulary with pad_id=0 eos_id=1.'
    )


def check_same_vocabulary(
    target: sentencepiece.SentencePieceProcessor,
    draft: sentencepiece.SentencePieceProcessor,
) -> None:
  """Checks that an id means the same piece to the target and to the draft.

  Raises:
    VocabularyError: naming the sizes, or the first piece that differs.
  """
  sizes = target.get_piece_size(), draft.get_piece_size()
  if sizes[0] != sizes[1]:
    raise VocabularyError(
        f"The target's vocabulary has {sizes[0]} pieces, the draft's"
        f' {sizes[1]}. Guesses are ids, so both must be one vocabulary.'
    )
  for i in range(sizes[0]):
    pieces = target.id_to_piece(i), draft.id_to_piece(i)
    if pieces[0] != pieces[1]:
      raise VocabularyError(
          f"Id {i} is {pieces[0]!r} in the target's vocabulary and"
          f" {pieces[1]!r} in the draft's. Guesses are ids, so both must be"
          ' one vocabulary.'
      )


def check_vocabulary_fits(vocab_size: int, name: str, model: Model) -> None:
  """Checks that a model has a logit for every piece of a vocabulary.

  Args:
    vocab_size: pieces of the vocabulary.
    name: of the model, for the message.
    model: the target or the draft.
  Raises:
    VocabularyError: if it has fewer logits than that.
  """
  if vocab_size > model.config.vocab_size:
    raise VocabularyError(
        f'The vocabulary has {vocab_size} pieces, the {name} only'
        f' {model.config.vocab_size} logits: they are not of one family. Pass'
        ' the vocabulary that both models were trained with.'
    )
