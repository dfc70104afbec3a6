# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a folder like google/madlad400-3b-mt's, compared with transformers.

MADLAD-400 is a T5 1.1 with special ids of its own: padding 1, end of sequence
2, decoder start 0, which is also the unknown piece. Its files hold the
embedding as `decoder.embed_tokens.weight` alone, beside a head of its own.

OUTPUTS are what `T5ForConditionalGeneration` of transformers 4.57.6 computed in
float32 for the folder that `write` writes. At every step the likeliest id leads
by more than 0.06.
"""

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.speculation import contracts
from tests import checkpoints_by_hand as by_hand
from tests import tiny

# Like MADLAD-400's, 2 heads of 24 are wider than 32.
CONFIG = tiny.config(head_dim=24)
EMBEDDING = 'decoder.embed_tokens.weight'
IDS = contracts.SpecialIds(end=2, padding=1, start=0)

# Without padding. Some hold id 0, which is an ordinary token here.
INPUTS = (
    (44, 26, 6, 49, 2),
    (16, 59, 10, 2),
    (21, 52, 13, 37, 36, 46, 6, 2),
    (30, 20, 38, 5, 0, 48, 60, 18, 2),
    (0, 25, 46, 43, 14, 5, 54, 2),
)
# Greedy, of at most 12 tokens. Ids 0 and 1 are generated as any other.
OUTPUTS = (
    (36, 46, 53, 18, 2),
    (58, 13, 42, 27, 51, 0, 5, 31, 53, 47, 51, 0),
    (1, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61, 61),
    (57, 21, 53, 23, 22, 18, 2),
    (57, 21, 53, 57, 21, 53, 57, 31, 53, 61, 1, 59),
)


def tensors():
  found = by_hand.hugging_face_tensors(CONFIG, tiny.params(CONFIG))
  found[EMBEDDING] = found.pop('shared.weight')
  return found


def write(folder, tensors):
  """Write a folder with MADLAD-400's special ids."""
  fields = by_hand.hugging_face_config(
      CONFIG, pad_token_id=1, eos_token_id=2, decoder_start_token_id=0
  )
  return by_hand.write_hugging_face(folder, fields, tensors)


@pytest.fixture(scope='module')
def checkpoint(tmp_path_factory):
  folder = tmp_path_factory.mktemp('madlad')
  return checkpoints.open(write(folder, tensors()))


def test_parameters_and_ids(checkpoint):
  assert checkpoint.network() == CONFIG
  assert checkpoint.special_ids == IDS
  jax.tree.map(
      np.testing.assert_array_equal,
      checkpoint.restore_params(models.abstract_params(CONFIG)),
      tiny.params(CONFIG),
  )


class TestDecoding:

  @pytest.mark.parametrize('way', ['alone', 'tokens'])
  def test_equals_transformers(self, checkpoint, way):
    model = models.load_model(checkpoint.folder)
    decoder = token_decoder.TokenDecoder(
        model, model, gamma=3, max_tokens=12, matmul_precision='highest'
    )
    (request,) = tiny.batches(INPUTS, length=12)
    decoded = tiny.decoded(getattr(decoder, way), request)
    np.testing.assert_array_equal(
        decoded.sequences, batching.pad(OUTPUTS, 12, IDS.padding)
    )
    assert decoded.num_tokens.tolist() == [len(row) for row in OUTPUTS]

  def test_draft_of_another_vocabulary(self, checkpoint, tmp_path):
    """T5X's layout stores no ids: its target has the default ones."""
    checkpoints.save(tmp_path, 1, tiny.params(CONFIG))
    target = models.find_model(checkpoints.open(tmp_path))
    with pytest.raises(ValueError, match='both must be of one vocabulary'):
      model_drafting.find(checkpoint.folder, target)
