# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts of tokens in texts, and of tokens after each token.

n-gram drafters and short draft vocabularies are made from these counts. They
lie in one file, which is bound to a vocabulary.

Legend: pieces (of the vocabulary, and what the texts hold beyond: sentinels, or
ids that only pad the head of the model that wrote them), contexts (pieces + 1:
each piece as the previous token, and last the beginning of a text), kept
(continuations that are stored per context).
"""

from collections.abc import Iterable, Sequence
import dataclasses
import io
import itertools
import json

from etils import epath
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import hub
from speculative_t5x.loading.files import user_paths
from speculative_t5x.speculation import ranges

FILE_NAME = 'token_counts.npz'
_MOST_SENTINELS = 300  # of a vocabulary; umT5's
NUM_KEPT = 64  # continuations per context, unless told otherwise
_ARRAYS = 'counts', 'totals', 'num_next', 'next_tokens', 'next_counts'
_CHUNK = 4096  # texts that are sorted together
_MAX_IDS = 2**24  # far above those of any vocabulary


class TableError(ranges.ArgumentError):
  """Token counts that cannot be read, or are of another vocabulary."""


@dataclasses.dataclass(frozen=True)
class TokenCounts:
  """Counts of tokens and of pairs of tokens."""

  counts: np.ndarray  # [pieces] int64, occurrences of each token
  totals: np.ndarray  # [contexts] int64, tokens that follow each context
  # [contexts] int64, different tokens that follow each context.
  num_next: np.ndarray
  # [contexts, kept] int32, the most frequent of them, the most frequent one
  # first.
  next_tokens: np.ndarray
  # [contexts, kept] int64, how often these follow; 0 fills a row.
  next_counts: np.ndarray
  eos_id: int  # end of sequence of the vocabulary
  # What identifies the vocabulary; None if that is not known.
  vocabulary: vocabularies.Fingerprint | None
  origin: str  # which texts were counted

  @property
  def num_pieces(self) -> int:
    return self.counts.size

  def most_frequent(self, size: int) -> np.ndarray:
    """Return ids of the most frequent tokens, ascending, int32.

    The end of sequence is always among them. Tokens that do not occur are left
    out, and there may be fewer than `size`.
    """
    others = np.flatnonzero(self.counts)
    others = others[others != self.eos_id]
    ranked = others[np.argsort(-self.counts[others], kind='stable')]
    is_ranked_before = self.counts[ranked] > self.counts[self.eos_id]
    position = min(int(np.sum(is_ranked_before)), size - 1)
    ranked = np.insert(ranked, position, self.eos_id)
    return np.sort(ranked[:size]).astype(np.int32)

  def coverage(self, ids: np.ndarray) -> float:
    """Return the share of all counted tokens that are among `ids`."""
    return float(np.sum(self.counts[ids]) / np.sum(self.counts))

  def check_fits(
      self,
      path: epath.PathLike,
      vocab_size: int,
      eos_id: int,
      vocabulary: vocabularies.Vocabulary | None,
      max_padded_ids: int,
  ) -> None:
    """Check that the counts, read from a path, are of a model's vocabulary.

    `vocab_size` is the width of the model's logits, of which so many may have
    no id in the vocabulary; that is None if it is not known.
    """
    identity = vocabulary and vocabularies.fingerprint(vocabulary)
    padded = vocab_size - self.num_pieces
    is_other = identity and self.vocabulary and identity != self.vocabulary
    if (
        is_other
        or self.eos_id != eos_id
        or not 0 <= padded <= max_padded_ids + _MOST_SENTINELS
    ):
      raise TableError(
          f'The table in {path} is of another vocabulary'
          f' ({self.vocabulary or self.num_pieces}, end {self.eos_id}) than the'
          f' model ({identity or vocab_size}, end {eos_id}; max_padded_ids'
          f" {max_padded_ids}). Make a table with the model's vocabulary, by"
          ' speculative-t5x make-table.',
          max_padded_ids=max_padded_ids,
      )

  def to_bytes(self) -> bytes:
    facts = {
        'eos_id': self.eos_id,
        'vocabulary': self.vocabulary and dataclasses.asdict(self.vocabulary),
        'origin': self.origin,
    }
    file = io.BytesIO()
    arrays = {name: getattr(self, name) for name in _ARRAYS}
    np.savez_compressed(file, facts=json.dumps(facts), **arrays)
    return file.getvalue()


def exists(folder: epath.PathLike | None) -> bool:
  """Return whether a folder has counts of the make-table job."""
  if folder is None or hub.is_name(folder):
    return False
  return (user_paths.expand(folder) / FILE_NAME).is_file()


def load(folder: epath.PathLike) -> TokenCounts:
  """Read the counts that the make-table job wrote to a folder."""
  path = user_paths.expand(folder) / FILE_NAME
  if not path.is_file():
    raise TableError(
        f'There is no {FILE_NAME} in {path.parent}. Give the output folder of'
        ' speculative-t5x make-table.'
    )
  with errors.reading(path, TableError):
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
      facts = json.loads(str(file['facts']))
      arrays = {name: file[name] for name in _ARRAYS}
    fingerprint = facts.pop('vocabulary')
    return TokenCounts(
        **arrays,
        **facts,
        vocabulary=fingerprint and vocabularies.Fingerprint(**fingerprint),
    )


def count(
    texts: Iterable[Sequence[int]],
    *,
    num_pieces: int,
    eos_id: int,
    num_kept: int,
    vocabulary: vocabularies.Fingerprint | None = None,
    origin: str = '',
) -> TokenCounts:
  """Count the tokens of texts and the pairs of tokens next to each other.

  The texts are token ids, the end of sequence included, and are read once.
  There are more pieces if they hold larger ids. Of continuations, at least 1,
  so many are stored per context. For the other arguments see `TokenCounts`.
  """
  previous, following, counts = _count_pairs(texts)
  if not counts.size:
    raise ValueError('The texts have no tokens. Give others.')
  num_pieces = max(num_pieces, int(following.max()) + 1)
  previous = np.where(previous == _MAX_IDS, num_pieces, previous)
  contexts = num_pieces + 1
  # Within a context the most frequent comes first, and smaller ids before.
  order = np.lexsort((following, -counts, previous))
  previous, following, counts = (
      x[order] for x in (previous, following, counts)
  )
  rank = np.arange(counts.size) - np.searchsorted(previous, previous)
  is_kept = rank < num_kept
  at = previous[is_kept], rank[is_kept]
  num_kept = int(np.max(rank[is_kept])) + 1
  next_tokens = np.zeros((contexts, num_kept), np.int32)
  next_counts = np.zeros((contexts, num_kept), np.int64)
  next_tokens[at] = following[is_kept]
  next_counts[at] = counts[is_kept]
  return TokenCounts(
      counts=_sum_by(following, counts, num_pieces),
      totals=_sum_by(previous, counts, contexts),
      num_next=np.bincount(previous, minlength=contexts),
      next_tokens=next_tokens,
      next_counts=next_counts,
      eos_id=eos_id,
      vocabulary=vocabulary,
      origin=origin,
  )


def _count_pairs(
    texts: Iterable[Sequence[int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Return contexts, tokens after them, and how often they do, all int64.

  The beginning of a text is the context _MAX_IDS.
  """
  pairs, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
  texts = iter(texts)
  while chunk := list(itertools.islice(texts, _CHUNK)):
    found = np.concatenate([_pairs(ids) for ids in chunk])
    pairs, index = np.unique(
        np.concatenate([pairs, found]), return_inverse=True
    )
    ones = np.ones(found.size, np.int64)
    counts = _sum_by(index, np.concatenate([counts, ones]), pairs.size)
  previous, following = np.divmod(pairs, _MAX_IDS)
  return previous, following, counts


def _pairs(ids: Sequence[int]) -> np.ndarray:
  """Return one number per token: its context times _MAX_IDS, and itself."""
  ids = np.asarray(ids, np.int64)
  if ids.size and not 0 <= ids.min() <= ids.max() < _MAX_IDS:
    wrong = ids.min() if ids.min() < 0 else ids.max()
    raise ValueError(
        f'A text has the token {wrong}, which is no id of a vocabulary. Give'
        ' other texts.'
    )
  previous = np.concatenate([[_MAX_IDS], ids[:-1]])[: ids.size]
  return previous * _MAX_IDS + ids


def _sum_by(index: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
  """Return the sums of values with equal index, [size] int64."""
  sums = np.zeros(size, np.int64)
  np.add.at(sums, index, values)
  return sums
