# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Target and drafter of an infer job, before their weights are read."""

import dataclasses
from typing import Any

from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import infer_source
from speculative_t5x.jobs.inference import inference as inference_lib
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class InferModels:
  """Target and drafter that were found for the inputs of a job.

  Attributes:
    setup: The job.
    source: Its inputs.
    decoder: Decodes them; its weights are still to be read.
    batch_size: Chosen for the machine, where the setup has none.
  """

  setup: infer_setup.InferSetup
  source: infer_source.Source
  decoder: token_decoder.TokenDecoder
  batch_size: int

  def inference(self, shown: progress.Progress) -> inference_lib.Inference:
    """Return what decodes; read no weights and compile nothing yet."""
    setup, decoder = self.setup, self.decoder
    is_plain = setup.drafter is None
    rows = self.batch_size * setup.num_outputs

    def make() -> engine_lib.Engine:
      loaded = workload_lib.loaded(decoder)
      return engine_lib.Engine(
          loaded.alone if is_plain else loaded,
          rows,
          rule=setup.workload.rule,
          hints_length=setup.workload.task_feature_lengths.get('hints'),
      )

    return inference_lib.Inference(
        is_plain,
        make,
        self._rows(),
        self.batch_size * setup.chunk_batches,
        shown,
        setup.search,
    )

  def _rows(self) -> inference_lib.Rows:
    """Return what is decoded of each input, and what is written of it."""
    setup, source, decoder = self.setup, self.source, self.decoder
    workload = setup.workload
    if setup.is_batch:
      from speculative_t5x.jobs.inference import batch_rows
      from speculative_t5x.serving import batch_lines

      texts = workload_lib.text_decoder(decoder)
      batch = batch_lines.Batch(
          texts,
          workload.model_name(setup.model_name),
          workload.fingerprint(texts),
          workload.seed,
      )
      return batch_rows.BatchRows(batch)
    return text_rows.TextRows(setup, source, decoder)

  def options(self) -> dict[str, Any]:
    """Return what chunks depend on beside the record's settings, as JSON."""
    return {
        'input_field': self.setup.input_field,
        'input_format': self.setup.input_format,
        'vocabulary': resumption.of_vocabulary(self.source.target.vocabulary),
        'chunk_batches': self.setup.chunk_batches,
        'network_configs': provenance.network_configs(self.decoder),
        **self.setup.columns,
    }

  def record(self) -> run_record.RunRecord:
    """Return the record before anything is decoded."""
    setup, workload = self.setup, self.setup.workload
    record = workload.new_record(
        'infer',
        self.decoder,
        setup.sampling,
        setup.draft_sampling,
        batch_size=self.batch_size,
        repeats=1,
        **workload_lib.search_settings(setup.search),
    )
    if setup.paths is not None:
      task = ', '.join(setup.paths)
      record = dataclasses.replace(record, task=task, split=None)
    if setup.drafter is None:
      unused = ['drafter', 'draft_sampling', 'gamma', 'gamma_policy']
      unused.append('draft_beams')
      # What a coupled rule draws plain decoding draws too.
      if not isinstance(workload.rule, contracts.CoupledRule):
        unused.append('verification')
      record = dataclasses.replace(
          record, lossless=True, **dict.fromkeys(unused)
      )
    if setup.is_batch:  # requests say how they are sampled
      record = dataclasses.replace(
          record,
          drafter=record.drafter
          and dataclasses.replace(record.drafter, temperature=None),
          num_decodes=None,
          **dict.fromkeys(run_record.SAMPLING_KEYS.values()),
      )
    return record


def find(
    setup: infer_setup.InferSetup, source: infer_source.Source
) -> InferModels:
  """Find the models of a job; see `Workload.find_decoder`."""
  mesh = setup.workload.make_mesh()
  decoder, batch_size = setup.workload.find_decoder(
      source.target,
      setup.drafter,
      gamma=setup.gamma,
      num_decodes=setup.num_outputs,
      batch_size=workload_lib.pad_batch(mesh, setup.batch_size),
  )
  return InferModels(setup, source, decoder, batch_size)
