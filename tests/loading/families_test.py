# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fields of config.json and their defaults, beside those of transformers."""

import re

import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import families
from speculative_t5x.loading.families import gemma3
from speculative_t5x.loading.families import t5gemma_checkpoints

TYPES = (
    't5', 'mt5', 'umt5', 't5gemma', 't5gemma2', 'bart', 'marian', 'm2m_100',
    'gpt2', 'llama', 'qwen3', 'gemma3_text',
)  # fmt: skip
TABLES = {
    name: families.of_model_type('config.json', name).FIELDS[name]
    for name in TYPES
} | {
    't5gemma decoder': t5gemma_checkpoints.OF_STACK,
    't5gemma2 decoder': gemma3.FIELDS['gemma3_text'],
}
# Fields of transformers that change no token of a model that is not trained,
# and settings of `generate`, of which `generation_config` reads some.
NO_EFFECT = re.compile(
    r'_.*|.*dropout.*|.*_pdrop|.*layerdrop|init.*|use_cache|output_.*|return_.*'
    r'|model_type|architectures|dtype|torchscript|transformers_version|tf_.*'
    r'|use_bfloat16|chunk_size_feed_forward|.*2(id|label)|problem_type'
    r'|finetuning_task|tokenizer_class|is_(encoder_)?decoder|sep_token_id'
    r'|cross_attention_hidden_size|pretraining_tp|reorder_and_upcast_attn'
    r'|summary_.*|num_hidden_layers|decoder_vocab_size|image_token_index'
    r'|(begin_)?suppress_tokens|bad_words_ids|do_sample|early_stopping|prefix'
    r'|(encoder_)?no_repeat_ngram_size|(max|min)_length|num_(beam.*|return.*)'
    r'|(.*_)?(length|diversity|repetition)_penalty|remove_invalid_values|top_.'
    r'|typical_p|temperature|task_specific_params|forced_.*'
    r'|decoder_start_token_id|.os_token_id|pad_token_id'
    r'|tie_encoder_decoder|add_cross_attention'
)
# What one of both derives from other fields.
DERIVED = re.compile(
    r'.*: (rope_.*|layer_types|dense_act_fn|is_gated_act|encoder|decoder'
    r'|scale_decoder_outputs)|gpt2: n_inner'
    r'|qwen3: (sliding_window|max_window_layers)'
    r'|mt5: tie_word_embeddings|t5gemma2: (vocab_size|eoi_token_index)'
)


def complete(name, **fields):
  if name in ('t5gemma', 't5gemma2'):
    fields = {'decoder': {}} | fields
  return families.complete('config.json', fields, TABLES[name], name)


@pytest.mark.parametrize('name', TABLES)
def test_values_that_no_network_has(name):
  """Of each field that is checked, by its name."""
  for field, each in TABLES[name].items():
    if each.values is None:
      continue
    with pytest.raises(checkpoints.CheckpointError, match=field):
      complete(name, **{field: 'a value'})


@pytest.mark.exhaustive
@pytest.mark.parametrize('name', TABLES)
def test_fields_of_transformers(name):
  """Each that changes what is computed is read, with transformers' default."""
  transformers = pytest.importorskip('transformers')
  model_type, *part = name.split()
  if model_type not in transformers.CONFIG_MAPPING:
    pytest.skip('a later version has it')
  config = transformers.AutoConfig.for_model(model_type)
  for attribute in part:
    config = getattr(config, attribute)
  theirs, ours = config.to_dict(), complete(name)
  read = {*ours}
  is_derived = lambda field: DERIVED.fullmatch(f'{name}: {field}')
  for field in {*theirs} - read:
    assert NO_EFFECT.fullmatch(field) or is_derived(field), field
  for field in {*theirs} & {*ours}:
    assert is_derived(field) or ours[field] == theirs[field], field
