# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Completions as JSON: choices, usage, and counts of speculation."""

from collections.abc import Iterator, Sequence
import dataclasses
import difflib
import time
from typing import Any, Protocol
import uuid

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import completions
from speculative_t5x.serving import running as running_lib
from speculative_t5x.speculation import outcome

_MIN_LOG_PROB = -9999.0  # JSON has no -Infinity
_UNKNOWN = '\ufffd'  # stands for bytes that are no character


class Ended(Protocol):
  """A completion that has ended, in a server or in a batch.

  Attributes:
    requests: Of its prompts.
    choices: Its outputs, prompt by prompt.
  """

  requests: Sequence[request_lib.Request]
  choices: Sequence[running_lib.Choice]


@dataclasses.dataclass
class Reply:
  """What is said of a completion.

  Attributes:
    completion: The completion.
    decoder: Its decoder.
    model: Name of the model.
    fingerprint: What the samples depend on beside the request, in a word.
    id: Names the completion.
    created: Seconds since 1970.
  """

  completion: completions.Completion
  decoder: text_decoder.TextDecoder
  model: str
  fingerprint: str
  id: str = dataclasses.field(
      default_factory=lambda: f'cmpl-{uuid.uuid4().hex}'
  )
  created: int = dataclasses.field(default_factory=lambda: int(time.time()))

  def head(self) -> dict[str, Any]:
    """Return what the JSON of a completion and of its events begins with."""
    return {
        'id': self.id,
        'object': 'text_completion',
        'created': self.created,
        'model': self.model,
        'system_fingerprint': self.fingerprint,
        'seed': self.completion.seed,
    }

  def choice(self, part: running_lib.Part) -> dict[str, Any]:
    """Return a choice, or what is new of it."""
    found = {
        'index': part.index,
        'text': ''.join(piece.text for piece in part.pieces),
        'finish_reason': part.finish_reason,
        'logprobs': None,
    }
    if self.completion.has_log_probs:
      found['logprobs'] = self._log_probs(part)
    if self.completion.has_trace:
      found['trace'] = list(self._trace(part))
    return found

  def totals(self, ended: Ended) -> dict[str, Any]:
    """Return usage and metrics of the completion."""
    num_inputs = sum(len(request.inputs) for request in ended.requests)
    num_outputs = sum(choice.num_tokens for choice in ended.choices)
    usage = {
        'prompt_tokens': num_inputs,
        'completion_tokens': num_outputs,
        'total_tokens': num_inputs + num_outputs,
    }
    if any(hints is not None for hints in self.completion.hints):
      usage['completion_tokens_details'] = self._of_predictions(ended)
    counts = None
    if len(ended.choices) == 1:
      decode = ended.choices[0].decode
      counts = decode and speculation(decode.statistics)
    return {'usage': usage, 'metrics': {'speculative_decoding': counts}}

  def _log_probs(self, part: running_lib.Part) -> dict[str, Any]:
    tokens, offsets = [], []
    for index, offset, text in _texts(part):
      if index == len(part.committed.tokens) - 1 and self._has_end(part):
        text = self.decoder.vocabulary.id_to_piece(part.committed.tokens[-1])
      tokens.append(text)
      offsets.append(offset)
    indices = [index for index, *_ in _texts(part)]
    log_probs = [
        _finite(part.committed.model_log_probs[index]) for index in indices
    ]
    own = zip(indices, tokens, log_probs)
    return {
        'tokens': tokens,
        'token_logprobs': log_probs,
        'top_logprobs': [self._alternatives(part, *each) for each in own],
        'text_offset': offsets,
    }

  def _alternatives(
      self, part: running_lib.Part, index: int, text: str, log_prob: float
  ) -> dict[str, float]:
    """Return log-probabilities of the likeliest tokens, and of the one there.

    A token without a text of its own, as a part of a character, has its piece.
    Of tokens that look alike the likelier one is kept, or the one there.
    """
    likeliest = part.committed.alternatives
    if likeliest is None:
      return {text: log_prob}
    own, found = part.committed.tokens[index], {}
    for i, value in zip(
        likeliest.tokens[index].tolist(), likeliest.log_probs[index]
    ):
      name = text
      if i != own:
        name = self._text_at(part, index, i)
        if not name or _UNKNOWN in name or name == text or name in found:
          name = self.decoder.vocabulary.id_to_piece(i)
      found.setdefault(name, _finite(value))
    return found | {text: log_prob}

  def _text_at(self, part: running_lib.Part, index: int, i: int) -> str:
    """Return the text that a token id would add at an index."""
    before = [*part.before, *part.committed.tokens[:index]]
    return self.decoder.vocabulary.decode([i], before)

  def _has_end(self, part: running_lib.Part) -> bool:
    decode = part.committed
    return isinstance(decode, results.Decode) and decode.has_end

  def _trace(self, part: running_lib.Part) -> Iterator[dict[str, str]]:
    """Yield how each token of a part came about; see `outcome.Originating`."""
    for index, _, text in _texts(part):
      origin = int(part.committed.origins[index])
      if origin >= 0:
        rejected = self._text_at(part, index, origin)
        yield {'text': rejected, 'kind': 'rejected'}
      kind = 'accepted' if origin == outcome.ACCEPTED else 'drawn'
      yield {'text': text, 'kind': kind}

  def _of_predictions(self, ended: Ended) -> dict[str, int]:
    """Count tokens of predictions that are in the outputs, and the others."""
    num_in_outputs = num_tokens = 0
    num_choices = self.completion.num_choices
    for index, choice in enumerate(ended.choices):
      hints = ended.requests[index // num_choices].hints
      output = choice.committed.tokens[: choice.num_tokens]
      for hint in hints or ():
        num_in_outputs += num_common(hint, output)
        num_tokens += len(hint)
    return {
        'accepted_prediction_tokens': num_in_outputs,
        'rejected_prediction_tokens': num_tokens - num_in_outputs,
    }


def whole(parts: Sequence[running_lib.Part]) -> list[running_lib.Part]:
  """Return each choice as one part, of all its parts in order."""
  by_choice: dict[int, running_lib.Part] = {}
  for part in parts:
    before = by_choice.get(part.index)
    pieces = [*before.pieces, *part.pieces] if before else part.pieces
    by_choice[part.index] = part._replace(pieces=pieces)
  return [by_choice[index] for index in sorted(by_choice)]


def num_common(one: Sequence[int], other: Sequence[int]) -> int:
  """Return how many tokens two sequences have in common, in their order."""
  matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
  return sum(block.size for block in matcher.get_matching_blocks())


def speculation(
    statistics: outcome.Statistics | None,
) -> dict[str, Any] | None:
  """Return the counts of an output under the names of other engines.

  A step is a target call with draft tokens; plain decoding has none.
  """
  if statistics is None:
    return None
  num_idle, *drafted_histogram = statistics.drafted_histogram.tolist()
  histogram = statistics.accepted_histogram.tolist()
  histogram[0] -= num_idle  # target calls without draft tokens
  num_steps = sum(drafted_histogram)
  num_accepted = int(statistics.num_accepted)
  num_drafted = int(statistics.num_drafted)
  return {
      'mean_acceptance_length': 1 + num_accepted / max(num_steps, 1),
      'draft_acceptance_rate': num_accepted / max(num_drafted, 1),
      'acceptance_histogram': histogram,
      'num_spec_steps': num_steps,
      'num_accepted_draft_tokens': num_accepted,
      'num_draft_tokens': num_drafted,
      'num_spec_tokens': len(drafted_histogram),
  }


def _finite(log_prob: float) -> float:
  return max(float(log_prob), _MIN_LOG_PROB)


def _texts(part: running_lib.Part) -> Iterator[tuple[int, int, str]]:
  """Yield index, offset and text of each token of a part.

  Of tokens that add text together, the last one has it.
  """
  for piece in part.pieces:
    for index in range(piece.first, piece.last):
      yield index, piece.offset, ''
    yield piece.last, piece.offset, piece.text
