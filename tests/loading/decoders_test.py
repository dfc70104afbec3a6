# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of decoders alone, decoded as texts, and their tensors."""

import dataclasses

import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import decoders_by_hand
from tests import reference_network
from tests import tiny_decoders

TEXT = 'w7 w12 w5 w7 w12 w80'
IDS = [7, 12, 5, 7, 12, 80]


def greedy(name, prompt, count):
  config = decoders_by_hand.CONFIGS[name]
  params, found = tiny_decoders.params(config), []
  ends = np.atleast_1d(decoders_by_hand.FIELDS[name]['eos_token_id'])
  while len(found) < count:
    logits = reference_network.logits(config, params, prompt, found)[-1]
    token = int(np.argmax(logits))
    if token in ends:
      break
    found.append(token)
  return found


def words(ids):
  """Return the text of an output, which continues that of its prompt."""
  # Ids from 90 on have no piece, and no text.
  return ''.join(f' w{i}' for i in ids if i < 90)


@pytest.mark.parametrize('name', ['llama', 'gemma3'])
def test_texts(tmp_path, name):
  """By a draft model of the family with fewer ends, from folders to texts."""
  target = decoders_by_hand.write(tmp_path / 'target', name)
  draft = decoders_by_hand.write(tmp_path / 'draft', name, 1, eos_token_id=1)
  decoder = st.load(
      target, draft, gamma=3, max_tokens=12, inputs_length=16, dtype='float32'
  )
  result = decoder.decode(TEXT)
  expected = greedy(name, [2, *IDS], 12)
  assert expected and result.tokens[-1] == expected
  assert result.text == words(expected)
  (streamed,) = decoder.stream([TEXT])
  (found,) = decoder.decode([TEXT], beams=1)
  assert streamed.text == found.text == result.text
  (hypotheses,) = decoder.stream([TEXT], beams=2)
  assert hypotheses.texts == decoder.decode(TEXT, beams=2).texts
  assert hypotheses.texts == [words(ids) for ids in hypotheses.tokens]
  # A text that begins so is not begun again.
  assert decoder.decode(f'<s> {TEXT}').tokens[-1] == expected


class TestOfT5X:
  """The decoder alone of T5X's examples, in T5X's layout."""

  @pytest.mark.parametrize(
      'changes',
      [
          {},
          dict(
              mlp_activations=('relu',),
              logits_via_embedding=False,
              logits_scale=1.0,
          ),
      ],
  )
  def test_sizes_of_the_parameters(self, tmp_path, changes):
    config = dataclasses.replace(tiny_decoders.CONFIGS['t5x'], **changes)
    params = tiny_decoders.params(config)
    checkpoints.save(tmp_path, 3, params)
    checkpoint = checkpoints.open(tmp_path)
    assert checkpoint.network() == config
    del params['decoder']['relpos_bias']
    checkpoints.save(tmp_path, 4, params)
    with pytest.raises(checkpoints.CheckpointError, match='relpos_bias'):
      checkpoints.open(tmp_path).network()

  @pytest.fixture
  def folder(self, tmp_path):
    """Return a folder of a target, a draft and a vocabulary."""
    for seed, name in enumerate(('target', 'draft')):
      params = tiny_decoders.params(tiny_decoders.PREFIX, seed)
      checkpoints.save(tmp_path / name, 1, params)
    decoders_by_hand.write_tokenizer(tmp_path / 'tokenizer.json', None)
    return tmp_path

  def greedy(self, ids, count):
    """Return what a prefix-LM writes after T5X's start, a text and its end."""
    config, found = tiny_decoders.PREFIX, []
    params = tiny_decoders.params(config)
    while len(found) < count and found[-1:] != [1]:
      logits = reference_network.logits(config, params, [*ids, 1], found)
      found.append(int(np.argmax(logits[-1])))
    return [x for x in found if x != 1]

  def test_prefix_of_a_text(self, folder):
    stated = {'prefix_bidirectional': True}
    decoder = st.load(
        folder / 'target',
        st.drafters.DraftModel(folder / 'draft', stated),
        vocabulary=folder,
        config=stated,
        gamma=3,
        max_tokens=12,
        inputs_length=16,
        dtype='float32',
    )
    expected = self.greedy(IDS, 12)
    assert expected and decoder.decode(TEXT).tokens[-1] == expected


class TestInputsForm:

  def test_an_encoder_reads_the_beginning(self):
    form = inputs_form.InputsForm(end=(1,))
    assert form.cut([5, 6], 3) == ([5, 6, 1], False)
    assert form.cut([5, 6, 7], 3) == ([5, 6, 1], True)

  def test_an_encoder_without_an_end(self):
    form = inputs_form.InputsForm(begin=(2,))
    assert form.cut([5, 6, 7], 3) == ([2, 5, 6], True)

  def test_an_output_continues_the_end(self):
    form = inputs_form.InputsForm(begin=(2,), is_continued=True)
    assert form.text_before([5, 6]) == [5, 6]
    assert not inputs_form.InputsForm().text_before([5, 6])
    assert form.cut([5, 6], 3) == ([2, 5, 6], False)
    assert form.cut([2, 5, 6], 3) == ([2, 5, 6], False)
    assert form.cut([5, 6, 7], 3) == ([2, 6, 7], True)
    assert form.cut([5, 6, 7], 1) == ([2], True)


def test_unknown_tensors(tmp_path):
  found = decoders_by_hand.tensors(
      'llama', tiny_decoders.params(decoders_by_hand.CONFIGS['llama'])
  )
  found['model.layers.0.self_attn.lora_A'] = np.zeros(3, np.float32)
  by_hand.write_hugging_face(
      tmp_path, decoders_by_hand.FIELDS['llama'], found
  )
  with pytest.raises(checkpoints.CheckpointError, match='lora_A'):
    models.load_model(tmp_path)
