# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X model that decodes speculatively.

Legend: batch (examples), length (of the outputs).
"""

from collections.abc import Callable, Mapping, MutableMapping
from concurrent import futures
import dataclasses
import functools
import inspect
from typing import Any

from flax import core as flax_core
import flax.linen as nn
import jax
import jax.numpy as jnp
import seqio
from t5x import models

from speculative_t5x.loading import drafters
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import arguments as arguments_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.t5x_guest import draft_module
from speculative_t5x.t5x_guest import example_id_converter
from speculative_t5x.t5x_guest import named_params
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.tasks import task_vocabulary

_EXAMPLE_ID = example_id_converter.EXAMPLE_ID
_HINTS = example_id_converter.HINTS


class SpeculativeModel(models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a drafter beside it.

  Loss, scoring and T5X's own decode functions see the target alone. A decode
  function that names `target` decodes through this package's networks instead:
  see `samplers`.
  """

  FEATURE_CONVERTER_CLS = example_id_converter.ExampleIdConverter

  def __init__(
      self,
      module: nn.Module,
      input_vocabulary: seqio.Vocabulary,
      output_vocabulary: seqio.Vocabulary,
      optimizer_def: Any,
      decode_fn: Callable = samplers.speculative_sample,
      *,
      drafter: drafters.Choice,
      gamma: int,
      mask_padded_ids: bool = False,
      max_padded_ids: int = models_lib.MAX_PADDED_IDS,
      hints_length: int | None = None,
      **kwargs,
  ):
    """Set up the model.

    Args:
      module: The target, a `t5x.examples.t5.network.Transformer`.
      input_vocabulary: The target's.
      output_vocabulary: The target's.
      optimizer_def: T5X's, for jobs that train; decoding does not use it.
      decode_fn: A function of `samplers`, or one of T5X's.
      drafter: Where the drafter comes from. T5X holds its parameters beside
        the target's.
      gamma: Draft tokens per block, at least 1.
      mask_padded_ids: Whether ids beyond the vocabulary, which only pad the
        logits to a round width, get probability 0 in this package's decode
        functions. In T5X's own they take part.
      max_padded_ids: Most logits without an id in the vocabulary; with more,
        the target was trained with another one.
      hints_length: Most tokens of the hints of an example, which are the
        feature `hints` of its task; None for no hints.
      **kwargs: Arguments of `t5x.models.EncoderDecoderModel`.
    Raises:
      ValueError: for a gamma or hints_length below 1, or a target that cannot
        be decoded.
    """
    ranges.check_settings(ranges.COUNT, gamma=gamma)
    super().__init__(
        draft_module.Pair(module),
        task_vocabulary.by_content(input_vocabulary),
        task_vocabulary.by_content(output_vocabulary),
        optimizer_def,
        decode_fn,
        **kwargs,
    )
    if hints_length is not None:
      ranges.check_settings(ranges.COUNT, hints_length=hints_length)
      self.FEATURE_CONVERTER_CLS = functools.partial(
          self.FEATURE_CONVERTER_CLS,
          hints=example_id_converter.Hints(output_vocabulary, hints_length),
      )
    self._target_config = draft_module.read_config('target', module)
    self._drafter = drafter
    self._gamma = gamma
    self._mask_padded_ids = mask_padded_ids
    self._max_padded_ids = max_padded_ids

  @functools.cached_property
  def drafting(self) -> drafters.Drafting:
    """The drafter, found and read when its parameters are first needed.

    T5X asks for their shapes before it tells the mesh, which then takes them
    from the host. They are not merged, so that the mesh may partition them; on
    a single device they stay as and where they are read.
    """
    mesh = None
    if jax.device_count() > 1:
      mesh = sharding.make_mesh(1, 1, jax.local_devices()[:1])
    target = self._target_source(mesh)
    vocabulary = task_vocabulary.of(self.output_vocabulary)
    # T5X asks for shapes while it traces, where Orbax cannot read on several
    # hosts. Another thread does not trace.
    with futures.ThreadPoolExecutor(1) as thread:
      find = thread.submit(drafters.find, self._drafter, target, vocabulary)
      found = find.result()
      models_lib.fit_vocabulary(vocabulary, target)
      drafting = thread.submit(found.load).result()
    if mesh is None:
      return drafting
    params = jax.device_get(drafting.params)
    return dataclasses.replace(drafting, params=params, models=())

  def _target_source(
      self, mesh: sharding.Mesh | None = None
  ) -> models_lib.ModelSource:
    """Return the target as drafters are found for it."""
    return models_lib.ModelSource(
        None,
        self._target_config,
        self._special_ids,
        mesh,
        max_padded_ids=self._max_padded_ids,
    )

  @property
  def draft_params(self) -> Mapping[str, Any]:
    """The drafter's parameters for T5X's train state; empty without any."""
    return named_params.nest(self.drafting.params)

  def get_initial_variables(
      self, rng, input_shapes, input_types=None
  ) -> flax_core.FrozenDict:
    """See `t5x.models.EncoderDecoderModel`; the drafter's are added."""
    length = input_shapes['decoder_input_tokens'][-1]
    arguments_lib.check_gammas([self._gamma], length)
    variables = super().get_initial_variables(rng, input_shapes, input_types)
    variables = flax_core.unfreeze(variables)
    self._add_draft(variables)
    return flax_core.freeze(variables)

  def _add_draft(self, variables: dict[str, Any]) -> None:
    """Add the drafter's parameters and their axes, as they were read."""
    if params := self.draft_params:
      variables['params']['draft'] = jax.tree.map(jnp.asarray, params)
      axes = named_params.axes(self.drafting)
      variables['params_axes']['draft'] = axes

  def _found(self, params: Any) -> drafters.Drafting:
    """Return the drafter with its parameters in T5X's train state."""
    read = self.drafting
    own = named_params.restore(read.params, params.get('draft', {}))
    return dataclasses.replace(read, params=own)

  def predict_batch_with_aux(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      rng: jax.Array | None = None,
      decoder_params: MutableMapping[str, Any] | None = None,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      prompt_with_targets: bool = False,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Decode a batch by the model's decode function.

    Args:
      params: The parameters of target and draft.
      batch: Features of `ExampleIdConverter`.
      rng: Not used by this package's decode functions, whose samples depend, up
        to rounding, on seed and example id alone.
      decoder_params: Arguments of the decode function for this call, as
        `{'seed': 1}`.
      return_all_decodes: Whether to return all decodes of an example, or the
        best.
      num_decodes: Samples per example.
      prompt_with_targets: Not supported by this package's decode functions.
    Returns:
      Sequences [batch, length] int32, or [batch, num_decodes, length] with the
      best last; `scores`, and the counts of the decode function, [batch] or
      [batch, num_decodes], those per position with one more axis.
    Raises:
      NotImplementedError: for `prompt_with_targets` and `decode_rng`.
    """
    arguments = inspect.signature(self.decode_fn).parameters
    if 'target' not in arguments:
      return super().predict_batch_with_aux(
          params, batch, rng, decoder_params, return_all_decodes, num_decodes,
          prompt_with_targets,
      )  # fmt: skip
    options = decoder_params or {}
    if prompt_with_targets or 'decode_rng' in options:
      raise NotImplementedError(
          'prompt_with_targets and decode_rng are not supported by this decode'
          ' function, whose samples depend on seed and example. Leave them out,'
          " or decode with T5X's temperature_sample."
      )
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    # The parameters are cast and the head transposed here, once per batch.
    config, prepared = t5_preparation.prepare(
        self._target_config, params['target']
    )
    model = self._model(config)
    # T5X takes id 0 for no token.
    tokens = batch['encoder_input_tokens']
    inputs = jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)
    bound = {'target': samplers.Target(model, prepared, inputs)}
    if 'drafter' in arguments:
      found = self._found(params)
      drafter = found.drafter(model, self._gamma)
      if _HINTS in batch:
        drafters.check_reads_hints(drafter, found.description)
      bound['drafter'] = samplers.Drafter(
          drafter, found.params, batch.get(_HINTS), found.description
      )
    sequences, scores, *counts = self.decode_fn(
        **bound,
        example_ids=batch[_EXAMPLE_ID],
        length=batch['decoder_input_tokens'].shape[1],
        num_decodes=num_decodes or defaults.num_decodes,
        **{'eos_id': model.special_ids.end, **options},
    )
    decodes = sequences, {'scores': scores, **(counts[0] if counts else {})}
    if return_all_decodes:
      return decodes
    return jax.tree.map(lambda x: x[:, -1], decodes)

  @property
  def _special_ids(self) -> contracts.SpecialIds:
    # T5X takes 1 for a vocabulary that has no end of sequence, and has padding
    # and start built in.
    end = self.output_vocabulary.eos_id or t5.SPECIAL_IDS.end
    return dataclasses.replace(t5.SPECIAL_IDS, end=end)

  def _model(self, config: t5.T5Config) -> network.NetworkModel:
    num_valid = None
    if self._mask_padded_ids:
      num_valid = self.output_vocabulary.vocab_size
    return network.NetworkModel(config, self._special_ids, num_valid)
