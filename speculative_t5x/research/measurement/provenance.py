# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""When a record is made, by which code, and on which machine."""

import dataclasses
import datetime
import functools
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import re
import subprocess
from typing import Any

import jax
import numpy as np

from speculative_t5x import version
from speculative_t5x.decoder import token_decoder
from speculative_t5x.networks import sharding
from speculative_t5x.research import run_record
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib


def new_record(job: str, **values: Any) -> run_record.RunRecord:
  """Return a record of this code and machine with the given values."""
  return run_record.RunRecord(
      job=job,
      **origin(),
      device=describe_device(),
      host=describe_host(),
      **values,
  )


def describe_sampling(sampling: sampling_lib.Sampling) -> dict[str, float]:
  """Return the fields of a record that describe a sampling."""
  keys = run_record.SAMPLING_KEYS.items()
  return {key: getattr(sampling, name) for name, key in keys}


def describe_decoding(
    decoder: token_decoder.TokenDecoder,
    rule: contracts.Rule,
    sampling: sampling_lib.Sampling,
    draft_sampling: sampling_lib.Sampling | None = None,
) -> dict[str, Any]:
  """Return the fields of a record that describe the decoding."""
  own = describe_sampling(sampling)
  draft = describe_sampling(draft_sampling or sampling)
  others = {k: x for k, x in draft.items() if x != own[k]}
  others.pop('temperature', None)
  value = getattr(rule, 'lenience', None)  # only the rule `lenience` has it
  lenience = None if value is None else float(str(np.asarray(value)))
  return {
      'target': decoder.target.describe(),
      'drafter': dataclasses.replace(
          decoder.loaded_drafter.description, temperature=draft['temperature']
      ),
      'verification': run_record.Verification(
          description.describe(rule), lenience
      ),
      'lossless': rule.is_lossless,
      'gamma': decoder.options.gamma,
      'gamma_policy': decoder.options.policy.name,
      **own,
      'draft_sampling': others or None,
      'num_decodes': decoder.options.num_decodes,
      'targets_length': decoder.options.max_tokens,
      'mesh': sharding.describe(decoder.mesh),
      'matmul_precision': decoder.matmul_precision,
      'num_valid_tokens': decoder.target_model.num_valid_tokens,
  }


def network_configs(decoder: token_decoder.TokenDecoder) -> list[str]:
  """Return the configs of target and draft models, as on a single CPU device.

  On others parameters are stored in another form, which changes no value.
  """
  models = decoder.target, *decoder.loaded_drafter.models
  return [repr(model.config.prepared('cpu', merged=True)) for model in models]


def origin() -> dict[str, str | None]:
  """Return when a record is made, and by which code."""
  now = datetime.datetime.now(datetime.UTC)
  return {
      'created': now.isoformat('T', 'seconds'),
      'package_version': version.VERSION,
      # A tree that travelled without git names its commit by the variable.
      'commit': _commit_at_first(pathlib.Path(__file__).parents[2])
      or os.environ.get('SPECULATIVE_T5X_COMMIT'),
  }


def commit_of(folder: pathlib.Path) -> str | None:
  """Return the commit of the checkout that holds a folder, None without one.

  If files of the folder that git tracks have been changed since, a plus sign
  and a hash of the changes follow.
  """
  git = lambda *command: subprocess.run(
      ['git', '--no-optional-locks', '-C', str(folder), *command],
      capture_output=True,
      check=True,
  ).stdout
  try:
    # An installed package may lie within the checkout of something else.
    git('ls-files', '--error-unmatch', '.')
    commit = git('rev-parse', 'HEAD').decode().strip()
    changes = git('diff', '--no-ext-diff', 'HEAD', '--', '.')
  except (OSError, subprocess.CalledProcessError):
    return None
  if not changes:
    return commit
  return f'{commit}+{hashlib.sha256(changes).hexdigest()[:8]}'


# A process goes on with the code that it began with, whatever changes later.
_commit_at_first = functools.cache(commit_of)


def describe_device() -> run_record.Device:
  """Return the accelerator and the software that drives it."""
  device = jax.devices()[0]
  libtpu = device.client.platform_version if device.platform == 'tpu' else None
  return run_record.Device(
      platform=device.platform,
      kind=device.device_kind,
      count=jax.device_count(),
      processes=jax.process_count(),
      jax=jax.__version__,
      jaxlib=importlib.metadata.version('jaxlib'),
      libtpu=libtpu,
  )


def describe_host() -> run_record.Host:
  """Return the processor of this machine and the cores of this process."""
  cpuinfo = pathlib.Path('/proc/cpuinfo')
  text = cpuinfo.read_text(encoding='utf-8') if cpuinfo.exists() else ''
  found = re.search(r'^model name\s*:\s*(.*\S)', text, re.MULTILINE)
  cpu = found[1] if found else platform.processor()
  return run_record.Host(cpu, len(os.sched_getaffinity(0)))
