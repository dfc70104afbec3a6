# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparisons with transformers, where it and PyTorch are installed.

transformers makes a random checkpoint of a family's shape and saves it in
shards; both read it, with the fields of config.json as a test spells them, and
compute the same. Every tensor is random, since initial ones and zeros hide
norms and biases that are not read.
"""

import dataclasses
import json
from typing import Any

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.research import whole_batches
from tests import tiny
from tests import tiny_decoders

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
_ = transformers.T5ForConditionalGeneration  # replaces the module

POSITIONS = 64
INPUTS, SEARCHES = 100, 20  # decoded greedily, and by beams
LENGTHS = 1, 2, 7, 8, 9, 24, 40  # of inputs; windows are 8


@dataclasses.dataclass(frozen=True)
class Pair:
  """A model of transformers, and the same one here.

  Attributes:
    theirs: transformers'.
    ours: Read from the folder that it was saved to.
    ids: The first id that texts may have, and the one behind the last.
  """

  theirs: Any
  ours: models.Model
  ids: tuple[int, int]

  @property
  def begin(self) -> tuple[int, ...]:
    """What a decoder begins with; nothing where it continues its input."""
    start = self.ours.special_ids.start
    default = () if start is None else (start,)
    return getattr(self.ours.config, 'decoder_prompt', default)

  def inputs(self, lengths, seed: int = 0) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(*self.ids, n).tolist() for n in lengths]

  def logits(self, inputs, outputs) -> np.ndarray:
    """Return their logits of each token of an output, and of one more."""
    fed = [*self.begin, *outputs]
    arguments = {'input_ids': torch.tensor([inputs])}
    first = len(self.begin) - 1
    if self.begin:
      fed = torch.tensor([fed])
      arguments['decoder_input_ids'] = fed
      arguments['decoder_attention_mask'] = torch.ones_like(fed)
    else:
      arguments['input_ids'] = torch.tensor([[*inputs, *outputs]])
      first = len(inputs) - 1
    mask = torch.ones_like(arguments['input_ids'])
    with torch.no_grad():
      out = self.theirs(**arguments, attention_mask=mask, use_cache=False)
    found = out.logits[0, first:].numpy().copy()
    found[:, list(self.ours.special_ids.forbidden)] = -np.inf
    return found

  def generated(self, inputs, count: int) -> list[int]:
    """Return what their `generate` writes, without an end."""
    (output,) = self._generate(inputs, count, num_beams=1).sequences.tolist()
    before = self.begin or tuple(inputs)
    assert tuple(output[: len(before)]) == before
    output = output[len(before) :]
    return output[:-1] if output[-1] in self.ours.special_ids.ends else output

  def _generate(self, inputs, count: int, **settings: Any) -> Any:
    ids = torch.tensor([inputs])
    return self.theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=count + max(len(self.begin) - 1, 0),
        eos_token_id=list(self.ours.special_ids.ends),
        pad_token_id=max(self.ours.special_ids.padding, 0),
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )

  def check_beams(self, penalty: float, count: int = 12) -> None:
    """Compare all hypotheses and scores of `generate` with a length penalty.
    """
    generator = np.random.default_rng(2)
    inputs = self.inputs(generator.integers(1, 25, SEARCHES), 3)
    decoder = token_decoder.TokenDecoder(
        self.ours, max_tokens=count, inputs_length=24
    )
    (batch,) = tiny.batches(inputs, length=count)
    search = beam_search.BeamSearch(beams=4, length_penalty=penalty)
    found = whole_batches.search_for(decoder.alone, batch, search)
    found_tokens, found_scores = jax.device_get(found).hypotheses(4)
    num_other = 0
    for own, each in enumerate(inputs):
      expected = self._generate(
          each, count, num_beams=4, num_return_sequences=4,
          length_penalty=penalty,
      )  # fmt: skip
      scores = expected.sequences_scores.numpy()[::-1]  # the best one last
      np.testing.assert_allclose(found_scores[own], scores, atol=1e-4)
      before = len(self.begin or each)
      sequences = expected.sequences.numpy()[::-1, before:].copy()
      is_end = np.isin(sequences, self.ours.special_ids.ends)
      is_past = np.cumsum(is_end, axis=1) - is_end > 0
      # In place of a padding id of 0 it fills with the end.
      sequences[is_past] = self.ours.special_ids.padding
      others = found_tokens[own, :, : sequences.shape[1]] != sequences
      num_other += bool(np.any(others))
    assert num_other <= 1  # at a near tie

  def check_logits(self) -> None:
    """Over many positions after inputs of unequal lengths, in one batch."""
    inputs = np.full((len(LENGTHS), max(LENGTHS)), -1, np.int32)
    for row, tokens in zip(inputs, self.inputs(LENGTHS)):
      row[: len(tokens)] = tokens
    outputs = np.array(self.inputs([POSITIONS] * len(LENGTHS), seed=1))
    found = tiny_decoders.decode(self.ours, inputs, np.int32(outputs), 4)
    for row, output, logits in zip(inputs, outputs, found):
      expected = self.logits(row[row >= 0].tolist(), output[:-1].tolist())
      assert np.abs(expected[np.isfinite(expected)]).max() > 1
      np.testing.assert_allclose(logits, expected, atol=1e-4)

  def check_greedy_outputs(self, exit_layer: int, generates: bool = True):
    """Of INPUTS inputs, decoded speculatively; near ties may differ.

    Args:
      exit_layer: Of the target's first layers, which draft.
      generates: Whether their `generate` decodes right; each token is compared
        with their logits otherwise.
    """
    decoder = token_decoder.TokenDecoder(
        self.ours, drafters.EarlyExit(exit_layer), gamma=3, max_tokens=16,
        inputs_length=24,
    )  # fmt: skip
    lengths = np.random.default_rng(1).integers(1, 25, INPUTS)
    inputs = self.inputs(lengths, seed=2)
    end = self.ours.special_ids.end
    for row, tokens in zip(inputs, decoder.generate(inputs, batch_size=32)):
      if not generates:
        self._check_likeliest(row, tokens, 16)
      elif (output := self.generated(row, 16)) != tokens:
        both = enumerate(zip([*output, end], [*tokens, end]))
        at, found = next((i, xs) for i, xs in both if xs[0] != xs[1])
        assert np.ptp(self.logits(row, tokens)[at, list(found)]) < 1e-4

  def _check_likeliest(self, inputs, tokens, count: int) -> None:
    logits = self.logits(inputs, tokens)
    for token, each in zip(tokens, logits):
      assert each.max() - each[token] < 1e-4
    if len(tokens) < count:
      of_ends = logits[-1, list(self.ours.special_ids.ends)]
      assert logits[-1].max() - of_ends.max() < 1e-4


def pair(
    auto: Any,
    fields: dict[str, Any],
    folder: Any,
    *,
    ids: tuple[int, int] = (4, 96),
    fixed: str = 'nothing',
    wide: tuple[str, ...] = (),
    scale: float = 1.5,
    generation: dict[str, Any] | None = None,
    dtype: str = 'float32',
) -> Pair:
  """Return a pair of random tensors.

  Args:
    auto: transformers' class of such models.
    fields: Of config.json; those that are `...` are left out.
    folder: Where to save it.
    ids: See `Pair`.
    fixed: Tensors with this in their names are left as they are.
    wide: Tensors with one of these in their names have larger values.
    scale: Of the random values of others. Large ones enlarge differences by
      rounding too, most where attention has no factor.
    generation: Fields of generation_config.json.
    dtype: Of the stored tensors.
  """
  fields = {name: x for name, x in fields.items() if x is not ...}
  config = transformers.AutoConfig.for_model(**fields)
  theirs = auto.from_config(config, attn_implementation='eager').eval()
  vars(theirs.generation_config).update(generation or {})
  torch.manual_seed(0)
  tensors = dict(theirs.named_parameters())
  if hasattr(theirs, 'final_logits_bias'):
    tensors['final_logits_bias'] = theirs.final_logits_bias
  with torch.no_grad():
    for name, tensor in tensors.items():
      if fixed in name:
        continue
      spread = scale * (0.4 if tensor.ndim == 1 else tensor.shape[-1] ** -0.5)
      if any(x in name for x in wide):
        spread = 1.0
      mean = float(tensor.ndim == 1 and bool((tensor == 1).all()))
      tensor.normal_(mean, spread)
  theirs.to(getattr(torch, dtype)).save_pretrained(
      folder, max_shard_size='10KB'
  )
  assert len(list(folder.glob('*.safetensors'))) > 1
  (folder / 'config.json').write_text(json.dumps(fields))
  theirs = auto.from_pretrained(
      folder, attn_implementation='eager', dtype=torch.float32
  ).eval()
  return Pair(theirs, models.load_model(folder, dtype='float32'), ids)
