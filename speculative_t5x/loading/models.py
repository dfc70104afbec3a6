# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models: found, with all that is known before weights are read; and loaded."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import errors
from speculative_t5x.loading import languages as languages_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import chips
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

# The network of a checkpoint, or fields to change in the one that it states.
Config = network_lib.Network | Mapping[str, Any] | None

# What decoding reads of a network.
_NEEDED = (
    'name', 'vocab_size', 'dtype', 'special_ids', 'reads_features',
    'ends_inputs', 'start', 'decode',
)  # fmt: skip
_FORMS = 'init', 'prepared', 'prepare'  # of one whose parameters are read

# T5 pads the width of its logits by less than 128, Qwen by up to 399.
MAX_PADDED_IDS = 512


@dataclasses.dataclass(frozen=True)
class Found:
  """All that is known of a model before its weights are read.

  Attributes:
    config: The network that it is loaded as.
    stored: The opened checkpoint; None for parameters that something else
      reads, such as a T5X job, and once they are read.
    mesh: The mesh of the parameters; None for one device.
    rules: Which axes of the parameters are partitioned over the mesh.
    special_ids: Special ids of the vocabulary that the network was trained
      with; None for those of the network.
    max_padded_ids: How many logits may have no id in the vocabulary, of this
      model as a target and of what drafts for it; see `fit_vocabulary`.
    vocabulary: Its vocabulary; None if it is not known.
    merged: Whether kernels that share an input are merged, on one device.
  """

  config: network_lib.Network
  _: dataclasses.KW_ONLY
  stored: checkpoints.Checkpoint | None = None
  mesh: jax.sharding.Mesh | None = None
  rules: sharding.Rules = sharding.MODEL_PARALLEL
  special_ids: contracts.SpecialIds | None = None
  max_padded_ids: int = MAX_PADDED_IDS
  vocabulary: vocabularies.Vocabulary | None = None
  merged: bool = True

  def __post_init__(self):
    if self.special_ids is None:
      object.__setattr__(self, 'special_ids', self.config.special_ids)

  @property
  def checkpoint(self) -> str | None:
    """The path of the checkpoint, see `Model`."""
    return self.stored and self.stored.source

  @property
  def num_params(self) -> int:
    """Number of parameters in the checkpoint."""
    return count_params(self.config)

  def describe(self) -> descriptions.ModelDescription:
    """Return name, checkpoint, size and dtype, for the run record."""
    return descriptions.ModelDescription(
        name=descriptions.name_of(self.checkpoint) if self.checkpoint else None,
        checkpoint=self.checkpoint,
        num_params=self.num_params,
        dtype=jnp.dtype(self.config.dtype).name,
    )

  def load(self, is_draft: bool = False) -> 'Model':
    """Read the weights, in the dtype of the network.

    Settings of decoding in a Hugging Face folder that are not applied here are
    named in a line on stderr, but for a draft's: outputs follow its target's.
    """
    line = self.stored.unapplied_settings
    if line is not None and not is_draft:
      print(line, file=sys.stderr)
    leaves = checkpoints.flatten(
        self.stored.restore_params(
            abstract_params(self.config),
            self.config.dtype,
            self.mesh and param_shardings(self.config, self.mesh, self.rules),
        )
    )
    # What is replaced is given up before the next one is prepared.
    return self.with_params(leaves.popitem() for _ in range(len(leaves)))

  def with_params(
      self, params: contracts.Params | network_lib.Leaves
  ) -> 'Model':
    """Return the model of parameters as they are stored.

    They are a tree, or leaves with their names, which are prepared one at a
    time.
    """
    if isinstance(params, Mapping):
      params = checkpoints.flatten(params).items()
    fields = self._of_model()
    leaves = self.config.prepare(params, self._is_merged)
    if self.mesh is not None:
      shardings = param_shardings(fields['config'], self.mesh, self.rules)
      where = checkpoints.flatten(shardings)
      place = lambda leaf: (leaf[0], jax.device_put(leaf[1], where[leaf[0]]))
      leaves = map(place, leaves)
    return Model(params=checkpoints.nest(dict(leaves)), **fields)

  def deferred(self) -> 'Model':
    """Return the model, whose weights are read when they are first used."""
    return Deferred(self)

  @property
  def _is_merged(self) -> bool:
    return self.merged and self.mesh is None

  def _of_model(self) -> dict[str, Any]:
    """Return what a loaded model has beside its parameters."""
    return {
        **vars(self),
        'config': self.config.prepared(jax.default_backend(), self._is_merged),
        'num_params': self.num_params,
        'checkpoint': self.checkpoint,
        'stored': None,
    }


@dataclasses.dataclass(frozen=True, repr=False)
class Model(Found):
  """A network and its parameters, ready to decode.

  `Model.of` makes one of parameters as they are trained.

  Attributes:
    params: Parameters on the device or the mesh, prepared for decoding, which
      `config` fits.
    num_params: Number of parameters in the checkpoint; None to count `params`.
    checkpoint: The path that they were read from, or the name of a model of
      the Hugging Face hub, with its commit; None without either.
  """

  params: contracts.Params
  _: dataclasses.KW_ONLY
  num_params: int | None = None
  checkpoint: str | None = None

  def __post_init__(self):
    super().__post_init__()
    if self.num_params is None:
      count = sum(x.size for x in jax.tree.leaves(self.params))
      object.__setattr__(self, 'num_params', count)

  @classmethod
  def of(
      cls,
      network: network_lib.Network,
      params: contracts.Params,
      special_ids: contracts.SpecialIds | None = None,
  ) -> 'Model':
    """Return the model of parameters in memory, on one device.

    Args:
      network: The network, such as an `st.networks.T5Config`. One of your own
        needs `start` and `decode` of `st.networks.Network` and the attributes,
        and decodes with its parameters as they are; with `init`, `prepared` and
        `prepare` they are compared and prepared like those of the package.
      params: A tree like that of `network.init`.
      special_ids: Special ids of the vocabulary; None for the network's. Its
        start is the network's too, if it has none.
    Raises:
      ValueError: if names or shapes are not those of the network, or it lacks
        what decoding needs.
    """
    network_lib.check_offers(network, 'Decoding', *_NEEDED)
    if special_ids is not None and special_ids.start is None:
      start = network.special_ids.start
      special_ids = dataclasses.replace(special_ids, start=start)
    if not network_lib.offers(network, *_FORMS):
      return cls(network, params, special_ids=special_ids)
    found, wanted = (
        checkpoints.shapes(checkpoints.flatten(x))
        for x in (params, abstract_params(network))
    )
    if problems := checkpoints.differences(found, wanted):
      raise ValueError(
          f'params is of another network than the {network.name} given:'
          f' {"; ".join(problems)}. Give a tree like that of its `init`.'
      )
    return make_model(network, params, special_ids=special_ids)

  def __repr__(self) -> str:
    mesh = sharding.describe(self.mesh) or 'one device'
    return f'Model({self.describe()}, {type(self.config).__name__}, on {mesh})'


class Deferred(Model):
  """A model whose weights are read when they are first used.

  It is for a job that may find all of its results, and then reads none.
  """

  def __init__(self, found: Found):
    vars(self).update(found._of_model(), _found=found)

  @functools.cached_property
  def params(self) -> contracts.Params:
    return self._found.load().params


def network_of(
    checkpoint: checkpoints.Checkpoint, config: Config, dtype: Any = jnp.float32
) -> network_lib.Network:
  """Return the network that a checkpoint is loaded as; see `load_model`."""
  if config is not None and not isinstance(config, Mapping):
    network_lib.check_offers(config, 'A checkpoint', *_NEEDED, *_FORMS)
    return config
  stated = checkpoint.network(dtype)
  try:
    return dataclasses.replace(stated, **(config or {}))
  except TypeError as error:  # names the field
    raise ranges.ArgumentError(
        f'config is not of the {stated.name} in {checkpoint.source}:'
        f' {errors.first_line(error)}.',
        config=config,
    ) from error


def find_model(
    checkpoint: checkpoints.Checkpoint,
    config: Config = None,
    *,
    dtype: Any = None,
    mesh: jax.sharding.Mesh | None = None,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
    vocabulary: vocabularies.Vocabulary | None = None,
    languages: Sequence[str] | None = None,
    max_padded_ids: int = MAX_PADDED_IDS,
) -> Found:
  """Return all that is known of a model without its weights.

  Names and shapes of its parameters are compared with the network's, and the
  vocabulary with both; it is None for a model whose target has one. For the
  other arguments see `load_model`, `languages.choose` and `fit_vocabulary`.
  """
  config = network_of(checkpoint, config, dtype or chips.suited_dtype())
  # Before memory is counted for it, or a job compiles.
  checkpoint.check_shapes(abstract_params(config))
  ids = checkpoint.special_ids
  if ids is None and vocabulary is not None:
    # T5X's layouts store none, and T5X has padding and start built in, as 0.
    ids = dataclasses.replace(config.special_ids, end=vocabulary.eos_id)
  found = Found(
      config,
      stored=checkpoint,
      mesh=mesh,
      rules=rules,
      special_ids=ids,
      max_padded_ids=max_padded_ids,
  )
  if vocabulary is None:
    return found
  vocabulary = fit_vocabulary(vocabulary, found)
  return languages_lib.choose(found, vocabulary, languages)


def abstract_params(config: network_lib.Network) -> contracts.Params:
  """Return names and shapes of a network's parameters; create none."""
  return jax.tree.map(lambda x: x, _abstract_params(config))  # a copy


@functools.cache
def _abstract_params(config: network_lib.Network) -> contracts.Params:
  return jax.eval_shape(config.init, jax.random.key(0))


@functools.cache
def count_params(config: network_lib.Network) -> int:
  """Return the number of parameters in a checkpoint of the network."""
  return sum(x.size for x in jax.tree.leaves(abstract_params(config)))


def param_shardings(
    config: network_lib.Network,
    mesh: sharding.Mesh,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> contracts.Params:
  """Return the shardings of a network's parameters on a mesh, in a like tree.

  What the mesh does not divide stays whole: with 6 heads and a model axis of 4
  every device holds all of the attention. Heads are never cut apart, though
  their number times their width might be divisible.
  """
  def place(param, names):
    shape = [
        config.axis_units.get(name, size)
        for name, size in zip(names, param.shape, strict=True)
    ]
    return sharding.named_sharding(mesh, rules, names, shape)

  return jax.tree.map(place, abstract_params(config), config.axes())


def make_model(
    config: network_lib.Network,
    params: contracts.Params | network_lib.Leaves,
    **fields: Any,
) -> Model:
  """Return a model of parameters in memory; `fields` are those of `Found`."""
  return Found(config, **fields).with_params(params)


def shorten_head(model: Model, ids: Sequence[int]) -> Model:
  """Return a draft model whose head has logits for some tokens only.

  It never drafts others: they get logit -inf. Decoding stays exact, and the
  head, often the largest part of a small model's step, takes less time. The end
  of sequence must be among the ids, or it is never drafted.
  """
  network_lib.check_offers(model.config, 'A short vocabulary', 'shorten_head')
  config, params = model.config.shorten_head(model.params, np.asarray(ids))
  if model.mesh is not None:
    shardings = param_shardings(config, model.mesh, model.rules)
    params = jax.device_put(params, shardings)
  return dataclasses.replace(model, config=config, params=params)


def load_model(
    path: checkpoints.Path,
    config: Config = None,
    *,
    dtype: Any = None,
    mesh: jax.sharding.Mesh | None = None,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> Model:
  """Load a checkpoint.

  Args:
    path: A `checkpoint_<step>` folder of T5X, a folder of several (the newest
      is taken), a Hugging Face folder, or the name of a public model: see
      `checkpoints.open`.
    config: Network of the checkpoint; None for the one that it states. Fields
      by name are changed in that one, as {'prefix_bidirectional': True}, which
      no checkpoint records.
    dtype: Type to decode in, where `config` is not a network; None for the one
      that suits the device.
    mesh: Devices to load onto; None for one device.
    rules: Says which axes are partitioned over the mesh.
  Raises:
    checkpoints.CheckpointError: if it cannot be read, or is of another network.
  """
  source = find_model(
      checkpoints.open(path), config, dtype=dtype, mesh=mesh, rules=rules
  )
  return source.load()


def fit_vocabulary(
    vocabulary: vocabularies.Vocabulary,
    target: Found,
    drafts: Sequence[Found] = (),
) -> vocabularies.Vocabulary:
  """Return a vocabulary with the sentinels that its target has logits for.

  Its end of sequence must be one of the target's. No model may have fewer
  logits than there are pieces, or more than pad their number to a round one.
  Drafts need no logits for sentinels.
  """
  if vocabulary.eos_id not in (ends := target.special_ids.ends):
    raise vocabularies.VocabularyError(
        f'The vocabulary {vocabulary.name} has end-of-sequence id'
        f' {vocabulary.eos_id}, the target {" or ".join(map(str, ends))}: they'
        ' are not of one family. Pass the vocabulary that the target was'
        ' trained with.'
    )
  vocabulary = vocabulary.within(target.config.vocab_size)
  sizes = [('target', vocabulary.num_ids, target)]
  sizes += [('draft', vocabulary.num_pieces, each) for each in drafts]
  most = target.max_padded_ids
  for name, size, model in sizes:
    logits = model.config.vocab_size
    if size > logits or logits - vocabulary.num_ids > most:
      than = 'only' if size > logits else f'more than {most} beyond them,'
      raise vocabularies.VocabularyError(
          f'The vocabulary has {size} pieces, the {name} {than} {logits}'
          ' logits: they are not of one family. Pass the vocabulary that both'
          ' models were trained with, or, if it is, a larger max_padded_ids.',
          max_padded_ids=most,
      )
  return vocabulary
