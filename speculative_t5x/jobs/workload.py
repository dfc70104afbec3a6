# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inputs that jobs decode, and their target."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import pathlib
import sys
from typing import Any

from etils import epy
import jax

from speculative_t5x import version
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder as text_decoder_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters as drafters_lib
from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import sharding
from speculative_t5x.policies import by_load as by_load_policy
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.rules import coupled
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification

with epy.lazy_imports():  # TensorFlow, which files of text do not need
  from speculative_t5x.tasks import examples as examples_lib
  from speculative_t5x.tasks import task_metrics


@dataclasses.dataclass(frozen=True)
class Workload:
  """A split of a task, a target, and how it decodes.

  The attributes are explained in `configs/decoding/workload.gin`, but for:

  Attributes:
    mixture_or_task_name: None if files are decoded.
    dtype: Unused where `target_config` is a network.
    matmul_precision: JAX's setting for matrix products; 'highest' multiplies
      float32 in float32 on TPU and GPU too.
  """

  mixture_or_task_name: str | None
  split: str
  task_feature_lengths: Mapping[str, int]
  checkpoint_path: str
  target_config: models.Config = None
  dtype: str | None = None
  seed: int = 0
  rule: contracts.Rule = verification.TOKENWISE
  mesh_shape: Sequence[int] | None = None
  matmul_precision: str | None = 'highest'
  policy: draft_length.Policy = draft_length.Fixed()  # noqa: RUF009
  mask_padded_ids: bool = False
  max_padded_ids: int = models.MAX_PADDED_IDS
  languages: Sequence[str] | None = None

  def __post_init__(self):
    draft_length.check(self.policy)
    request_lib.check_int32('seed', self.seed)
    description.check(self.rule)

  @property
  def length(self) -> int:
    """The most tokens of an output; 0 where the lengths do not say."""
    lengths = self.task_feature_lengths
    return lengths.get('targets', 0) if isinstance(lengths, Mapping) else 0

  def make_mesh(self) -> jax.sharding.Mesh | None:
    """Return the mesh given; None for one device, or one still to choose."""
    if self.mesh_shape is None:
      sharding.check_one_process()
      return None
    return sharding.from_shape(self.mesh_shape)

  def find_target(
      self, vocabulary: vocabularies.Vocabulary | None = None
  ) -> models.Found:
    """Return the target whose weights are still to be read."""
    return models.find_model(
        pairing.open_checkpoint('target', self.checkpoint_path),
        self.target_config,
        dtype=self.dtype,
        vocabulary=vocabulary,
        languages=self.languages,
        max_padded_ids=self.max_padded_ids,
    )

  def place(
      self,
      target: models.Found,
      drafters: Sequence[drafters_lib.Drafting],
      *,
      gamma: int,
      sizes: Sequence[int] | None,
      num_decodes: int = 1,
  ) -> placement.Placed:
    """Choose mesh and batch size, where they are not given, and say so.

    Of several batch sizes, the largest must fit.
    """
    inputs = self.task_feature_lengths['inputs']
    placed = placement.place(
        target,
        lambda target: [drafters_lib.find(each, target) for each in drafters],
        memory.Lengths(inputs, self.length, gamma, num_decodes),
        sizes,
        self.mesh_shape,
    )
    print(placed.line, file=sys.stderr)
    return placed

  def task(self) -> Any:
    """Return the seqio task; see `tasks.examples.find_task`."""
    return examples_lib.find_task(self.mixture_or_task_name, self.split)

  def vocabulary(self, file: str | None) -> vocabularies.Vocabulary:
    """Return that of a file, else of the task, else of the target's folder."""
    if file is not None:
      return vocabularies.load(file)
    if self.mixture_or_task_name is None:
      with pairing.naming('target'):
        checkpoints.open(self.checkpoint_path)  # or its path is mistyped
      vocabulary = vocabularies.load_any(self.checkpoint_path)
      if vocabulary is None:
        raise vocabularies.VocabularyError(
            f'{self.checkpoint_path} has no vocabulary. Set VOCABULARY_FILE to'
            " the target's SentencePiece model or tokenizer.json."
        )
      return vocabulary
    return examples_lib.vocabulary_of(self.task())

  def read_task(
      self, num_examples: int | None = None, least: int = 1
  ) -> tuple[models.Found, 'examples_lib.Examples']:
    """Find the target, and read the split that it decodes.

    At most `num_examples` are read, and the split must have `least`. The target
    gets the special ids of the task's vocabulary.
    """
    task_metrics.check(self.task())
    # The task itself puts the source language before its inputs.
    target = self.find_target(self.vocabulary(None))
    name, split = self.mixture_or_task_name, self.split
    progress.say(f'reading {name}, {split}')
    return target, examples_lib.load(
        name, split, self.task_feature_lengths, num_examples, least
    )

  def find_decoder(
      self,
      target: models.Found,
      drafter: drafters_lib.Drafting | None,
      *,
      gamma: int,
      num_decodes: int,
      batch_size: int | None,
  ) -> tuple[token_decoder.TokenDecoder, int]:
    """Place drafter and target; return the decoder, and the batch size chosen.

    The weights of the target are read when they are first used, and those of
    the drafter by `TokenDecoder.loaded`; `loaded` reads both.
    """
    if drafter is None:  # decode plainly
      drafter, gamma = drafters_lib.Drafting(), 1
    arguments.check_gammas([gamma], self.length)
    placed = self.place(
        target,
        [drafter],
        sizes=batch_size and [sharding.round_up(self.make_mesh(), batch_size)],
        gamma=gamma,
        num_decodes=num_decodes,
    )
    (found,) = placed.drafters
    decoder = self.make_decoder(
        placed.target.deferred(),
        found,
        gamma=gamma,
        num_decodes=num_decodes,
        policy=self.policy,
        rescale_log_probs=self.rule.is_lossless,
    )
    return decoder, placed.batch_size

  def make_decoder(
      self,
      target: models.Model,
      drafter: drafters_lib.Drafting,
      **options: Any,
  ) -> token_decoder.TokenDecoder:
    """Return the `token_decoder.TokenDecoder` of what is loaded."""
    return token_decoder.TokenDecoder(
        target,
        drafter,
        max_tokens=self.length,
        inputs_length=self.task_feature_lengths['inputs'],
        num_valid_tokens=(
            target.vocabulary.num_ids if self.mask_padded_ids else None
        ),
        matmul_precision=self.matmul_precision,
        **options,
    )

  def settings(
      self,
      sampling: sampling_lib.Sampling,
      draft_sampling: sampling_lib.Sampling | None = None,
  ) -> request_lib.Settings:
    """Return what all requests share."""
    return request_lib.Settings(
        sampling=sampling,
        draft_sampling=draft_sampling,
        max_tokens=self.length,
        seed=self.seed,
        rule=self.rule,
    )

  def batches(
      self,
      requests: Sequence[request_lib.Request | None],
      settings: request_lib.Settings,
      batch_size: int,
  ) -> Iterator[input_batch.InputBatch]:
    """Yield requests in whole batches, for what times them."""
    return input_batch.whole_batches(
        requests,
        settings,
        size=batch_size,
        inputs_length=self.task_feature_lengths['inputs'],
    )

  def model_name(self, name: str | None) -> str:
    """Return what clients call the model, by default that of its folder."""
    return name or pathlib.PurePath(self.checkpoint_path).name

  def fingerprint(self, decoder: text_decoder_lib.TextDecoder) -> str:
    """Return a word that is the same where a seed has the same samples.

    Models and vocabulary are in it by their contents.
    """
    record = dataclasses.replace(
        self.new_record('serve', decoder.tokens, sampling_lib.GREEDY),
        device=None,
        host=None,
        mesh={},
    )
    if isinstance(self.rule, contracts.CoupledRule):  # whatever drafts
      unused = 'drafter', 'draft_sampling', 'gamma', 'gamma_policy'
      record = dataclasses.replace(record, **dict.fromkeys(unused))
    target, _ = provenance.network_configs(decoder.tokens)
    vocabulary = resumption.of_vocabulary(decoder.vocabulary)
    options = {**vocabulary, 'network': target, 'version': version.VERSION}
    return f'fp_{resumption.name_of(record, options).rpartition("_")[2]}'

  def new_record(
      self,
      job: str,
      decoder: token_decoder.TokenDecoder,
      sampling: sampling_lib.Sampling,
      draft_sampling: sampling_lib.Sampling | None = None,
      **values: Any,
  ) -> run_record.RunRecord:
    """Return the record of a configuration before it is measured."""
    return provenance.new_record(
        job,
        **provenance.describe_decoding(
            decoder, self.rule, sampling, draft_sampling
        ),
        task=self.mixture_or_task_name,
        split=self.split,
        seed=self.seed,
        inputs_length=self.task_feature_lengths['inputs'],
        **values,
    )


def check_search(
    search: beam_search.BeamSearch,
    workload: Workload,
    samplings: Sequence[sampling_lib.Sampling],
    draft_samplings: Sequence[sampling_lib.Sampling],
    num_decodes: int,
) -> None:
  """Check that nothing is set that a search does not use."""
  every = *samplings, *draft_samplings
  sampled = any(each != sampling_lib.GREEDY for each in every)
  is_default = workload.rule == verification.TOKENWISE
  if sampled or not is_default or not workload.policy.is_constant:
    raise ValueError(
        'A beam search (BEAMS) draws nothing, and its trees have one depth,'
        ' GAMMA. Leave out TEMPERATURE, TOPK, TOPP, MINP, TYPICALP, those of'
        ' the drafter, and the files of RULE and POLICY, or set BEAMS to 1.'
    )
  search.check_num_decodes(num_decodes)


def by_load(workload: Workload) -> tuple[Workload, int]:
  """Return a workload whose drafts are as long as pays with all its rows.

  With its gamma, the most draft tokens.

  Raises:
    ValueError: for another rule than the default, or a coupled one.
  """
  workload = coupled_by_default(workload)
  if not isinstance(rule := workload.rule, contracts.CoupledRule):
    raise ranges.ArgumentError(
        "gamma 'auto' chooses drafts by what else is decoded, and under the"
        f' rule {description.describe(rule)} samples depend on drafts. Take a'
        ' coupled rule, as that of configs/rules/coupled.gin, or a number.',
        rule=rule,
    )
  policy = by_load_policy.ByLoad()
  gamma = min(by_load_policy.GAMMA, workload.length or by_load_policy.GAMMA)
  return dataclasses.replace(workload, policy=policy), gamma


def coupled_by_default(workload: Workload) -> Workload:
  """Return a workload with a coupled rule in the place of the default."""
  if workload.rule != verification.TOKENWISE:
    return workload
  return dataclasses.replace(workload, rule=coupled.Coupled())


def text_decoder(
    decoder: token_decoder.TokenDecoder,
) -> text_decoder_lib.TextDecoder:
  """Return a decoder of texts for one of token ids."""
  target = decoder.target
  return text_decoder_lib.TextDecoder(
      target, decoder.loaded_drafter, target.vocabulary, decoder.options
  )


def requests_of(
    examples: 'examples_lib.Examples', settings: request_lib.Settings
) -> list[request_lib.Request]:
  """Return the requests of the examples of a task."""
  return [
      settings.request(each.tokens, each.example_id, hints=each.hints)
      for each in examples.rows
  ]


def loaded(decoder: token_decoder.TokenDecoder) -> token_decoder.TokenDecoder:
  """Return a decoder with all weights read that were deferred."""
  if decoder.loaded_drafter.read:  # first: it is read sooner, and may not fit
    progress.say('loading the drafter')
    decoder = decoder.loaded()
  target = decoder.target
  if isinstance(target, models.Deferred) and 'params' not in vars(target):
    progress.say(f'loading {target.checkpoint}')
    target.params  # noqa: B018
  return decoder
