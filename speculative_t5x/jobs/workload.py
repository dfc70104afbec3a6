# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inputs that jobs decode, and their target."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import hashlib
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
from speculative_t5x.jobs.outputs import training_settings
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
  from speculative_t5x.tasks import task_vocabulary


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
    for drafter in placed.drafters:
      note_longer_outputs(drafter, self.length)
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
    vocabulary = examples_lib.vocabulary_of(self.task())
    return task_vocabulary.of(vocabulary)

  def num_examples(self) -> int | None:
    """Return the number of examples of the split, None if it is not known."""
    try:
      return self.task().num_input_examples(self.split)
    except KeyError:  # a source may know only some of its splits
      return None

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
        sizes=None if batch_size is None else [batch_size],
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
    note_unstopped_drafts(decoder)
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
    tokens = decoder.tokens
    drafter = None  # of which a coupled rule's samples do not depend
    if not isinstance(self.rule, contracts.CoupledRule):
      drafter = resumption.by_contents(tokens.loaded_drafter.description)
    parts = (
        version.VERSION,
        resumption.by_contents(tokens.target.describe()),
        provenance.network_configs(tokens)[0],
        tokens.target.special_ids,
        drafter,
        decoder.options,
        self.rule,
        resumption.of_vocabulary(decoder.vocabulary),
    )
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return f'fp_{digest[:12]}'

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
  """Raise ValueError where outputs of a search are to be sampled too.

  Likewise for what its records would name and it does not use: a rule, or a
  policy that changes the length of drafts.
  """
  for each in samplings:
    beam_search.check_draws_nothing(each, rule=workload.rule)
  for each in draft_samplings:
    beam_search.check_draws_nothing(draft_sampling=each)
  if not workload.policy.is_constant:
    raise ranges.ArgumentError(
        f'The draft length policy {workload.policy.name} changes the length of'
        ' drafts, and all trees of a beam search have one depth, gamma. Leave'
        ' out policy, or set beams=1.',
        policy=workload.policy.name,
    )
  search.check_num_decodes(num_decodes)


def search_settings(
    search: beam_search.BeamSearch | None,
) -> dict[str, Any]:
  """Return the settings of a search for a record; none without one."""
  return {} if search is None else dataclasses.asdict(search)


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


def note_unread_hints(decoder: token_decoder.TokenDecoder) -> None:
  """Print a line on stderr unless the drafter reads hints."""
  if not decoder.reads_hints:
    name = decoder.loaded_drafter.description.name
    way = f'the drafter {name} does' if name else 'plain decoding does'
    print(
        f'The inputs have hints, which {way} not use.'
        ' configs/drafters/lookup.gin makes drafts of them.',
        file=sys.stderr,
    )


def note_unstopped_drafts(decoder: token_decoder.TokenDecoder) -> None:
  """Print a line on stderr if drafts give a policy nothing to stop them by.

  A drafter that draws no token, as lookup, has no distributions.
  """
  name = decoder.loaded_drafter.description.name  # None in plain decoding
  draws_none = not decoder.drafter.form.num_uniforms
  may_stop = not isinstance(decoder.options.policy, draft_length.DraftsOn)
  if name and draws_none and may_stop:
    print(
        f'The policy {decoder.options.policy.name} cannot stop what the drafter'
        f' {name} chooses without a distribution. GAMMA alone limits these'
        ' drafts.',
        file=sys.stderr,
    )


def note_longer_outputs(drafter: drafters_lib.Drafting, length: int) -> None:
  """Print a line on stderr if a draft was trained on shorter outputs alone."""
  for path in drafter.description.paths:
    trained = training_settings.trained_length(path)
    if trained is not None and trained < length:
      print(
          f'The draft {path} was trained on outputs of up to {trained} tokens,'
          f' and here they may have {length}: further on its tokens may be'
          ' accepted less often.',
          file=sys.stderr,
      )


def note_unread_sampling(
    decoder: token_decoder.TokenDecoder, pairs: Sequence[sampling_lib.Pair]
) -> None:
  """Print a line on stderr if the drafter's own sampling has no effect."""
  name = decoder.loaded_drafter.description.name  # None in plain decoding
  is_own = any(each.drafter != each.target for each in pairs)
  if name and is_own and not decoder.drafter.form.num_uniforms:
    print(
        f'The drafter {name} samples no token: DRAFT_TEMPERATURE, DRAFT_TOPK'
        ' and the like change nothing.',
        file=sys.stderr,
    )


def pad_batch(
    mesh: jax.sharding.Mesh | None, batch_size: int | None
) -> int | None:
  """Return a batch size that the data axis divides; say if it is another."""
  if batch_size is None:
    return None
  padded = sharding.round_up(mesh, batch_size)
  if padded != batch_size:
    print(
        f'Batches of {batch_size} examples become batches of {padded}, because'
        f' the mesh is {sharding.describe(mesh)}. Choose a multiple of its data'
        ' axis to set the size yourself.',
        file=sys.stderr,
    )
  return padded


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
