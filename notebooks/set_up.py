# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Installs what the notebooks need; called by the first cell of each.

Colab and Kaggle have another JAX than the package needs, with plugins of its
own age: a newer JAX alone would lose the accelerator, and say nothing. So the
accelerator's part is installed too, in the versions that the tests run with.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

_SOURCE = pathlib.Path(__file__).resolve().parents[1]


def set_up(extra: str) -> None:
  """Install the package if it is missing, and say what JAX runs on.

  Args:
    extra: Extra of the package that the notebook needs.
  Raises:
    RuntimeError: for another Python, or if pip fails.
  """
  accelerator = find_accelerator()
  if accelerator is None:
    os.environ.setdefault('JAX_PLATFORMS', 'cpu')  # an idle libtpu complains
  if importlib.util.find_spec('speculative_t5x') is None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
      raise RuntimeError('speculative_t5x needs Python 3.11, 3.12 or 3.13.')
    print('Installing speculative_t5x: some minutes.')
    is_stale = _install(extra, accelerator)
    sys.path.insert(0, str(_SOURCE))  # until Python starts anew
    if is_stale:
      print('Python restarts, to load the new packages. Run this cell again.')
      _restart()
      return
  import jax

  devices = jax.devices()
  print(f'JAX {jax.__version__} on {len(devices)} x {devices[0].device_kind}')
  if accelerator and devices[0].platform == 'cpu':
    print(
        'JAX does not find the accelerator of this machine. Run'
        f" `pip install 'jax[{accelerator}]=={jax.__version__}'`, and restart"
        ' Python.'
    )


def find_accelerator() -> str | None:
  """Return what JAX calls the accelerator of this machine; None without one."""
  if shutil.which('nvidia-smi'):
    listing = subprocess.run(['nvidia-smi', '-L'], capture_output=True)
    if listing.returncode == 0:
      return 'cuda12'
  devices = pathlib.Path('/dev')
  nodes = [*devices.glob('accel[0-9]*'), *devices.glob('vfio/[0-9]*')]
  return 'tpu' if nodes else None


def _install(extra: str, accelerator: str | None) -> bool:
  """Install the package; return whether a loaded module was replaced."""
  own = _SOURCE / f'requirements-py3{sys.version_info.minor}.txt'
  lock = own if own.exists() else _SOURCE / 'requirements.txt'
  wanted = [f'{_SOURCE}[{extra}]']
  if accelerator:
    wanted.append(f'jax[{accelerator}]')
  before = _versions()
  done = subprocess.run(
      [sys.executable, '-m', 'pip', 'install', '-q', '-c', lock, '-e', *wanted],
      capture_output=True,
      text=True,
  )
  if done.returncode:
    lines = '\n'.join(done.stderr.strip().splitlines()[-3:])
    raise RuntimeError(f'pip failed. Is there a network?\n{lines}')
  importlib.invalidate_caches()
  after = _versions()
  changed = {name for name in before if before[name] != after.get(name)}
  return any(
      module in sys.modules and changed.intersection(names)
      for module, names in importlib.metadata.packages_distributions().items()
  )


def _versions() -> dict[str, str]:
  """Return the version of each installed distribution."""
  return {x.name: x.version for x in importlib.metadata.distributions()}


def _restart() -> None:
  """Have the notebook start Python anew."""
  from IPython import get_ipython

  get_ipython().kernel.do_shutdown(restart=True)
