# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The make-table job: counts tokens, for drafters that are made from counts."""

from collections.abc import Iterator, Mapping, Sequence
import itertools

from etils import epath

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import predictions as predictions_lib


def make_table(
    *,
    output_dir: checkpoints.Path,
    mixture_or_task_name: str | None,
    split: str = 'train',
    task_feature_lengths: Mapping[str, int] | None = None,
    predictions: str | Sequence[str] | None = None,
    vocabulary_file: str | None = None,
    num_examples: int | None = None,
    continuations: int = token_counts.NUM_KEPT,
) -> token_counts.TokenCounts:
  """Count the tokens of a task's references, or of what a target decoded.

  The arguments are explained in `configs/runs/ngram_table.gin`.

  Returns:
    The counts, which are also written.
  Raises:
    ValueError: for texts that are missing or of another vocabulary.
    OSError: if the folder cannot be written to, or another job uses it.
  """
  arguments.check_counts(continuations=continuations, num_examples=num_examples)
  paths = [predictions] if isinstance(predictions, str) else predictions
  vocabulary = _vocabulary(mixture_or_task_name, split, paths, vocabulary_file)
  if paths is None:
    origin = f'{mixture_or_task_name}, {split}'
    task = examples_lib.find_task(mixture_or_task_name, split)
    read = examples_lib.read(task, split, task_feature_lengths)
    texts: Iterator = (cut['targets'] for _, cut in read)
  else:
    origin = ', '.join(paths)
    texts = (
        tokens
        for path in paths
        for _, tokens in predictions_lib.read_pairs(
            user_paths.expand(path), vocabulary
        )
    )
  identity = vocabularies.fingerprint(vocabulary)
  progress.say(f'counting the tokens of {origin}')
  with folder_lock.hold(output_dir):
    counts = token_counts.count(
        itertools.islice(texts, num_examples),
        num_pieces=identity.num_pieces,
        eos_id=vocabulary.eos_id,
        num_kept=continuations,
        vocabulary=identity,
        origin=origin,
    )
    path = whole_files.write_bytes(
        user_paths.expand(output_dir),
        token_counts.FILE_NAME,
        [counts.to_bytes()],
    )
  _show(counts, path, identity.num_pieces)
  return counts


def _vocabulary(
    name: str | None,
    split: str,
    paths: Sequence[str] | None,
    vocabulary_file: str | None,
) -> vocabularies.Vocabulary:
  if paths is not None and vocabulary_file is not None:
    return vocabularies.load(vocabulary_file)
  if name is None or vocabulary_file is not None:
    raise ValueError(
        'Counted are either predictions, by PREDICTIONS with VOCABULARY_FILE or'
        ' MIXTURE_OR_TASK_NAME, or the references of a task, by'
        ' MIXTURE_OR_TASK_NAME alone, which has a vocabulary of its own.'
    )
  task = examples_lib.find_task(name, split)
  return examples_lib.vocabulary_of(task)


def _show(
    counts: token_counts.TokenCounts, path: epath.Path, num_pieces: int
) -> None:
  total, num_different = counts.counts.sum(), (counts.counts > 0).sum()
  print(
      f'Counted {total:,} tokens in {counts.totals[-1]:,} texts of'
      f' {counts.origin}: {num_different:,} of {counts.num_pieces:,} pieces'
      ' occur.'
  )
  for size in (2**n for n in range(8, 16) if 2**n < num_different):
    share = counts.coverage(counts.most_frequent(size))
    print(f'  the {size:,} most frequent are {100 * share:.2f} % of them')
  print(f'Written: {path}')
