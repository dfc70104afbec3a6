# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as pydantic models, which FastAPI publishes.

What a request may say whatever is served stands here; what one server offers,
such as its longest output, `completions` checks.
"""

import json
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field
import pydantic_core

from speculative_t5x.speculation import outcome

MAX_CHOICES = 128  # per prompt, and prompts per request
MAX_STOPS = 4  # as OpenAI has it


# Strict, because a text is not a number, and neither are true and false.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Name = Annotated[Text, Field(max_length=1000)]
# As JSON's schemas have it, 1.0 is one too.
Integer = Annotated[
    pydantic.StrictInt,
    pydantic.BeforeValidator(
        lambda x: int(x) if isinstance(x, float) and x.is_integer() else x
    ),
]
Count = Annotated[Integer, Field(ge=1, lt=2**31)]
TokenId = Annotated[pydantic.StrictInt, Field(ge=0, lt=2**31)]
TokenIds = Annotated[list[TokenId], Field(min_length=1)]
Few = Annotated[Integer, Field(ge=0, le=outcome.MAX_ALTERNATIVES)]
FewChoices = Field(min_length=1, max_length=MAX_CHOICES)


def _only(neutral: Any) -> Any:
  """Return the type of a field that asks for nothing, by its one value."""

  def check(value: Any) -> Any:
    # 0 and 0.0 are the same number in JSON, and false is none.
    is_flag = isinstance(neutral, bool)
    if value is None or (
        value == neutral and isinstance(value, bool) == is_flag
    ):
      return value
    raise pydantic_core.PydanticCustomError(
        'neutral', f'only {json.dumps(neutral)} is supported'
    )

  schema = pydantic.WithJsonSchema({'enum': [neutral, None]})
  return Annotated[Any, pydantic.AfterValidator(check), schema]


class _Request(pydantic.BaseModel):
  """An object of a request, of which no field is unknown."""

  model_config = pydantic.ConfigDict(
      extra='forbid', use_attribute_docstrings=True
  )


class StreamOptions(_Request):
  """Options of a stream."""

  include_usage: pydantic.StrictBool = False
  """Sends usage and metrics in a last event."""


class Prediction(_Request):
  """A text that an output may repeat, as OpenAI's chats have it."""

  type: Literal['content']
  content: Text


class CompletionRequest(_Request):
  """A request for completions; null asks for the default."""

  model: Name
  """Name that `/v1/models` says."""
  prompt: (
      Text
      | Annotated[list[Text], FewChoices]
      | TokenIds
      | Annotated[list[TokenIds], FewChoices]
  )
  """Inputs; token ids have the end of sequence where the model was trained with
  one."""
  max_tokens: Count | None = None
  """Most tokens per output, end included; 16 by default."""
  temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
  """0 is argmax. 1 by default, and 0 with beams."""
  # Smaller ones would be 0 in float32, which asks for something else.
  top_p: Annotated[Number, Field(ge=1e-6, le=1)] | None = 1.0
  """Mass of the likeliest tokens that are kept."""
  top_k: Annotated[Integer, Field(ge=-1, lt=2**31)] | None = 0
  """Number of likeliest tokens that are kept; 0 and -1: all."""
  min_p: Annotated[Number, Field(ge=0, le=1)] | None = 0.0
  """Tokens are kept that are this likely beside the likeliest."""
  n: Annotated[Count, Field(le=MAX_CHOICES)] | None = 1
  """Outputs per prompt."""
  beams: Count | None = 1
  """Hypotheses of a beam search, which needs temperature 0; its `n` best ones
  are the outputs."""
  seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
  """Decides the samples; without it one is drawn, which the answer has."""
  stop: Name | Annotated[list[Name], Field(max_length=MAX_STOPS)] | None = None
  """Texts before which an output ends."""
  stream: pydantic.StrictBool | None = False
  """Sends tokens as they come."""
  stream_options: StreamOptions | None = None
  logprobs: Few | None = None
  """Log-probability of each token, and of so many likeliest ones in its place,
  by the model's own distribution."""
  prediction: Prediction | None = None
  """Text that outputs may repeat: a hint for the drafter."""
  return_trace: pydantic.StrictBool | None = False
  """Gives choices a `trace`: how each token came about."""
  user: Annotated[str, Field(strict=True, max_length=1000)] | None = None
  """Is not used."""

  # What there is not, with the value that asks for nothing.
  best_of: _only(1) = None
  echo: _only(False) = None
  suffix: _only('') = None
  frequency_penalty: _only(0) = None
  presence_penalty: _only(0) = None
  repetition_penalty: _only(1) = None
  logit_bias: _only({}) = None
  ignore_eos: _only(False) = None
  skip_special_tokens: _only(True) = None

  @pydantic.field_validator('*')
  @classmethod
  def _null_is_the_default(
      cls, value: Any, info: pydantic.ValidationInfo
  ) -> Any:
    if value is None:
      return cls.model_fields[info.field_name].default
    return value

  @property
  def prompts(self) -> list[str | list[int]]:
    """Each prompt."""
    is_one = isinstance(self.prompt, str) or isinstance(self.prompt[0], int)
    return [self.prompt] if is_one else self.prompt

  @property
  def stops(self) -> list[str]:
    """Each stop text."""
    return [self.stop] if isinstance(self.stop, str) else self.stop or []


class BatchLine(_Request):
  """A line of one of OpenAI's batch files."""

  custom_id: Name
  method: Literal['POST']
  url: Literal['/v1/completions']
  body: CompletionRequest


class LogProbs(pydantic.BaseModel):
  """Log-probabilities of a choice, token by token."""

  tokens: list[str]
  token_logprobs: list[float]
  top_logprobs: list[dict[str, float]]
  text_offset: list[int]


class TraceToken(pydantic.BaseModel):
  """A token, and how it came about."""

  text: str
  kind: Literal['accepted', 'drawn', 'rejected']


class CompletionChoice(pydantic.BaseModel):
  """An output, or what an event adds to it."""

  index: int
  text: str
  finish_reason: Literal['stop', 'length'] | None
  logprobs: LogProbs | None
  trace: list[TraceToken] | None = None


class Usage(pydantic.BaseModel):
  """Numbers of tokens."""

  prompt_tokens: int
  completion_tokens: int
  total_tokens: int


class Speculation(pydantic.BaseModel):
  """Counts of an output under the names of other engines.

  A step is a target call with draft tokens.
  """

  mean_acceptance_length: float
  draft_acceptance_rate: float
  acceptance_histogram: list[int]
  num_spec_steps: int
  num_accepted_draft_tokens: int
  num_draft_tokens: int
  num_spec_tokens: int


class CompletionMetrics(pydantic.BaseModel):
  """Counts of a completion."""

  speculative_decoding: Speculation | None


class CompletionAnswer(pydantic.BaseModel):
  """A completion, or an event of one that is streamed."""

  id: str
  object: Literal['text_completion']
  created: int
  model: str
  system_fingerprint: str
  seed: int
  choices: list[CompletionChoice]
  usage: Usage | None = None
  metrics: CompletionMetrics | None = None


class ServedModel(pydantic.BaseModel):
  """A model; the last three fields are for the page."""

  id: str
  object: Literal['model'] = 'model'
  created: int
  owned_by: str = 'speculative_t5x'
  speculative: bool
  max_tokens: int
  examples: list[str]


class ServedModels(pydantic.BaseModel):
  """All models."""

  object: Literal['list'] = 'list'
  data: list[ServedModel]


class ErrorDetails(pydantic.BaseModel):
  """Reason of an error."""

  message: str
  type: str
  param: str | None
  code: str | None


class ErrorAnswer(pydantic.BaseModel):
  """An error as OpenAI's clients read it."""

  error: ErrorDetails
