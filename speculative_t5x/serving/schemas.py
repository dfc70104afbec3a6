# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as pydantic models, which FastAPI publishes.

What a request may say whatever is served stands here; what one server offers,
such as its longest output, `completions` checks.
"""

from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field
import pydantic_core

from speculative_t5x.speculation import outcome

MAX_CHOICES = 128  # per prompt, and prompts per request
MAX_STOPS = 4  # as OpenAI has it


def _whole(value: Any) -> Any:
  """Return 1.0 as 1, which is the same number in JSON."""
  is_whole = isinstance(value, float) and value.is_integer()
  return int(value) if is_whole else value


def _flag(value: Any) -> bool:
  """Return true or false, which are not 1 and 0 in JSON as in Python."""
  if not isinstance(value, bool):
    raise pydantic_core.PydanticCustomError(
        'bool_type', 'Input should be true or false'
    )
  return value


# Strict, because a text is not a number, and neither are true and false.
Flag = Annotated[bool, Field(strict=True)]
No = Annotated[Literal[False], pydantic.BeforeValidator(_flag)]
Yes = Annotated[Literal[True], pydantic.BeforeValidator(_flag)]
Whole = Annotated[int, Field(strict=True), pydantic.BeforeValidator(_whole)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Name = Annotated[Text, Field(max_length=1000)]
Count = Annotated[Whole, Field(ge=1, lt=2**31)]
# Not `Whole`, whose function would take 0.2 s per body of a megabyte, in which
# the event loop does nothing else.
TokenId = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
TokenIds = Annotated[list[TokenId], Field(min_length=1)]
Zero = Annotated[Number, Field(ge=0, le=0)]
One = Annotated[Number, Field(ge=1, le=1)]
# Smaller ones would be 0 in float32, which asks for something else.
Share = Annotated[Number, Field(ge=1e-6, le=1)]
FewChoices = Field(min_length=1, max_length=MAX_CHOICES)


class _Request(pydantic.BaseModel):
  """An object of a request, of which no field is unknown."""

  model_config = pydantic.ConfigDict(
      extra='forbid', use_attribute_docstrings=True
  )


class StreamOptions(_Request):
  """Options of a stream."""

  include_usage: Flag = False
  """Sends usage and metrics in a last event."""
  include_obfuscation: No = False


class PredictionPart(_Request):
  """A part of a prediction."""

  type: Literal['text']
  text: Text


class Prediction(_Request):
  """A text that an output may repeat, as OpenAI's chats have it."""

  type: Literal['content']
  content: Text | Annotated[list[PredictionPart], FewChoices]

  @property
  def text(self) -> str:
    """The text of all parts."""
    if isinstance(self.content, str):
      return self.content
    return ''.join(part.text for part in self.content)


class _Inert(_Request):
  """Fields that ask for what there is not, with values that ask for nothing."""

  best_of: One | None = None
  echo: No | None = None
  suffix: Literal[''] | None = None
  frequency_penalty: Zero | None = None
  presence_penalty: Zero | None = None
  repetition_penalty: One | None = None
  length_penalty: One | None = None
  logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
  ignore_eos: No | None = None
  min_tokens: Zero | None = None
  use_beam_search: No | None = None
  skip_special_tokens: Yes | None = None
  stop_token_ids: Annotated[list[Any], Field(max_length=0)] | None = None
  include_stop_str_in_output: No | None = None


class CompletionRequest(_Inert):
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
  top_p: Share | None = 1.0
  """Mass of the likeliest tokens that are kept."""
  top_k: Annotated[Whole, Field(ge=-1, lt=2**31)] | None = 0
  """Number of likeliest tokens that are kept; 0 and -1: all."""
  min_p: Zero | Share | None = 0.0
  """Tokens are kept that are this likely beside the likeliest."""
  n: Annotated[Count, Field(le=MAX_CHOICES)] | None = 1
  """Outputs per prompt."""
  beams: Count | None = 1
  """Hypotheses of a beam search, which needs temperature 0; its `n` best ones
  are the outputs."""
  seed: Annotated[Whole, Field(ge=0, lt=2**63)] | None = None
  """Decides the samples; without it one is drawn, which the answer has."""
  stop: Name | Annotated[list[Name], Field(max_length=MAX_STOPS)] | None = None
  """Texts before which an output ends."""
  stream: Flag | None = False
  """Sends tokens as they come."""
  stream_options: StreamOptions | None = None
  logprobs: (
      Annotated[Whole, Field(ge=0, le=outcome.MAX_ALTERNATIVES)] | None
  ) = None
  """Log-probability of each token, and of so many likeliest ones in its place,
  by the model's own distribution."""
  prediction: (
      Prediction | Annotated[list[Prediction], FewChoices] | None
  ) = None
  """Text that outputs may repeat: a hint for the drafter, one for all prompts
  or one per prompt."""
  return_trace: Flag | None = False
  """Gives choices a `trace`: how each token came about."""
  user: Annotated[str, Field(strict=True, max_length=1000)] | None = None
  """Is not used."""

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

  @property
  def predictions(self) -> list[str | None]:
    """Each prediction, or the one for all prompts."""
    if isinstance(self.prediction, list):
      return [each.text for each in self.prediction]
    return [self.prediction and self.prediction.text] * len(self.prompts)


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


class PredictionUsage(pydantic.BaseModel):
  """Tokens of predictions, by whether they are in the outputs."""

  accepted_prediction_tokens: int
  rejected_prediction_tokens: int


class Usage(pydantic.BaseModel):
  """Numbers of tokens."""

  prompt_tokens: int
  completion_tokens: int
  total_tokens: int
  completion_tokens_details: PredictionUsage | None = None


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


class ServerStatus(pydantic.BaseModel):
  """State of the server."""

  status: Literal['alive', 'ready']


class ErrorDetails(pydantic.BaseModel):
  """Reason of an error."""

  message: str
  type: str
  param: str | None
  code: str | None


class ErrorAnswer(pydantic.BaseModel):
  """An error as OpenAI's clients read it."""

  error: ErrorDetails
