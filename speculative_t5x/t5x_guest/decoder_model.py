# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X model of a decoder alone that decodes speculatively.

Legend: batch (examples), length (of prompt and output together).
"""

from collections.abc import Callable, Mapping, MutableMapping
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from t5x import models

from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from speculative_t5x.t5x_guest import example_id_converter
from speculative_t5x.t5x_guest import guest_model
from speculative_t5x.t5x_guest import module_sizes
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.tasks import task_vocabulary

_IS_PROMPT = 'decoder_causal_attention'


class _InOneLength(network.NetworkModel):
  """A model whose prompt and output share one length, as T5X's do."""

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    if isinstance(self.network, decoder_only.DecoderOnly):
      # It adds the prompts' width to the slots. An output as long as all has no
      # prompt.
      slots -= inputs.shape[1]
    return super().start(params, inputs, rows, slots, features)


class SpeculativeDecoderOnlyModel(
    guest_model.GuestModel, models.DecoderOnlyModel
):
  """T5X's model of a decoder alone with a drafter beside it: `GuestModel`."""

  FEATURE_CONVERTER_CLS = example_id_converter.DecoderExampleIdConverter
  MODULE = module_sizes.DECODER

  def __init__(
      self,
      model: models.DecoderOnlyModel,
      decode_fn: Callable = samplers.speculative_sample,
      *,
      default_decoder_params: models.DecoderParams | None = None,
      **kwargs,
  ):
    """Set up the model.

    Args:
      model: T5X's own, whose module, a
        `t5x.examples.decoder_only.network.DecoderWrapper`, is the target. What
        it has besides holds here too, but for how it decodes.
      decode_fn: A function of `samplers`, or one of T5X's.
      default_decoder_params: Whether callers get all decodes, and how many
        there are, where they do not say; None for T5X's defaults.
      **kwargs: Arguments of `GuestModel`, such as `drafter` and `gamma`.
    Raises:
      ValueError: for a subclass of T5X's model, which may compute anything, or
        as `GuestModel`.
    """
    theirs, kind = models.DecoderOnlyModel, type(model)
    # Where gin binds a method, it makes a class of the same name.
    if (kind.__module__, kind.__qualname__) != (
        theirs.__module__, theirs.__qualname__
    ):  # fmt: skip
      raise ValueError(
          f'The model is a {kind.__module__}.{kind.__qualname__}; only'
          f' {theirs.__module__}.{theirs.__qualname__} itself can be decoded'
          ' here. Models of experts and others are not supported.'
      )
    self._default_decoder_params = (
        default_decoder_params or models.DecoderParams()
    )
    super().__init__(
        model.module,
        task_vocabulary.by_content(model.output_vocabulary),
        model.optimizer_def,
        decode_fn,
        inputs_bidirectional_attention=model._inputs_bidirectional_attention,
        label_smoothing=model._label_smoothing,
        z_loss=model._z_loss,
        loss_normalizing_factor=model._loss_normalizing_factor,
        **kwargs,
    )
    self._target_config = dataclasses.replace(
        self._target_config,
        prefix_bidirectional=model._inputs_bidirectional_attention,
    )

  @property
  def _special_ids(self) -> contracts.SpecialIds:
    # What it is fed first is the last token of a prompt.
    return dataclasses.replace(super()._special_ids, start=None)

  def predict_batch_with_aux(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      rng: jax.Array | None = None,
      *,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      decoder_params: MutableMapping[str, Any] | None = None,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Continue the prompts of a batch by the model's decode function.

    An output has as much room as its prompt leaves of the length, and ends with
    the first end of sequence after the prompt, which may contain some.

    Args:
      params: The parameters of target and draft.
      batch: Features of `DecoderExampleIdConverter` for a task of inputs and
        targets; the targets are not read.
      rng: Not used by this package's decode functions, whose samples depend, up
        to rounding, on seed and example id alone.
      return_all_decodes: Whether to return all decodes of an example, or the
        best.
      num_decodes: Samples per example.
      decoder_params: Arguments of the decode function for this call, as
        `{'seed': 1}`.
    Returns:
      Outputs [batch, length] int32 without their prompts, or [batch,
      num_decodes, length] with the best last; `scores`, and the counts of the
      decode function, as `SpeculativeModel` returns them.
    Raises:
      NotImplementedError: for `decode_rng`.
      ValueError: for a batch of a task without inputs.
    """
    if 'target' not in self._arguments:
      defaults = self._default_decoder_params
      if return_all_decodes is None:
        return_all_decodes = defaults.return_all_decodes
      return super().predict_batch_with_aux(
          params,
          batch,
          rng,
          return_all_decodes=return_all_decodes,
          num_decodes=num_decodes or defaults.num_decodes,
          decoder_params=decoder_params,
      )
    if _IS_PROMPT not in batch:
      raise ValueError(
          f'The batch has no {_IS_PROMPT}, which says what to continue. Give'
          ' lengths of inputs and of targets, of a task that has both.'
      )
    tokens = batch['decoder_input_tokens']
    # The first is T5X's start, which the network puts there itself.
    prompts = (tokens * batch[_IS_PROMPT])[:, 1:]
    room = tokens.shape[1] - jnp.sum(prompts > 0, axis=1, dtype=jnp.int32)
    return self._decode(
        params,
        batch,
        prompts,
        decoder_params,
        return_all_decodes,
        num_decodes,
        room=room,
        make=_InOneLength,
    )
