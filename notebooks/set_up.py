# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the repository and installs what the notebooks need.

The first cell of each notebook calls it. Beside a checkout's notebooks it finds
that checkout. Uploaded alone, as to Colab, it clones the repository or unpacks
an archive of it that lies beside.

Colab and Kaggle have another JAX than the package needs, with plugins of its
own age: a newer JAX alone would lose the accelerator, and say nothing. So the
accelerator's part is installed too, in the versions that the tests run with.
"""

from collections.abc import Sequence
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

_OWN = pathlib.Path(__file__).resolve().parents[1]
_CHECKOUT = pathlib.Path('speculative_t5x_source')
_MARK = 'requirements.txt'
_ARCHIVES = '.zip', '.tar', '.tar.gz', '.tgz'


def set_up(extra: str, repository: str | None = None) -> None:
  """Install the package if it is missing, and say what JAX runs on.

  Args:
    extra: Extra of the package that the notebook needs.
    repository: Address of the repository; None if there is none.
  Raises:
    RuntimeError: for another Python, or if git or pip fails.
    FileNotFoundError: if the repository is not found.
  """
  accelerator = find_accelerator()
  if accelerator is None:
    os.environ.setdefault('JAX_PLATFORMS', 'cpu')  # an idle libtpu complains
  if importlib.util.find_spec('speculative_t5x') is None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
      raise RuntimeError('speculative_t5x needs Python 3.11, 3.12 or 3.13.')
    print('Installing speculative_t5x: some minutes.')
    source = find_source(repository)
    is_stale = _install(source, extra, accelerator)
    sys.path.insert(0, str(source))  # until Python starts anew
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


def find_source(repository: str | None) -> pathlib.Path:
  """Return the folder of the repository, which is fetched at first.

  Raises:
    RuntimeError: if it cannot be cloned.
    FileNotFoundError: if nothing holds it.
  """
  if (_OWN / _MARK).exists():
    return _OWN
  uploaded = [x for x in os.listdir() if x.endswith(_ARCHIVES)]
  if _CHECKOUT.exists():
    pass
  elif repository:
    command = 'git', 'clone', '-q', '--depth=1', repository, str(_CHECKOUT)
    _run(command, 'git')
  elif uploaded:
    shutil.unpack_archive(uploaded[0], _CHECKOUT)
  else:
    raise FileNotFoundError(
        'Upload an archive of the repository (.zip or .tar.gz) beside this'
        ' notebook, or give its address: set_up(..., repository=<address>).'
    )
  folders = _folders(_CHECKOUT)
  if not folders:
    raise FileNotFoundError(f'{_CHECKOUT} is not a checkout. Remove it.')
  return pathlib.Path(folders[0]).resolve()


def _folders(root: pathlib.Path) -> list[str]:
  """Return the checkouts in a folder, the highest one first."""
  return [x for x, _, files in os.walk(root) if _MARK in files]


def find_accelerator() -> str | None:
  """Return what JAX calls the accelerator of this machine; None without one."""
  if shutil.which('nvidia-smi'):
    listing = subprocess.run(['nvidia-smi', '-L'], capture_output=True)
    if listing.returncode == 0:
      return 'cuda12'
  devices = pathlib.Path('/dev')
  nodes = [*devices.glob('accel[0-9]*'), *devices.glob('vfio/[0-9]*')]
  return 'tpu' if nodes else None


def _install(
    source: pathlib.Path, extra: str, accelerator: str | None
) -> bool:
  """Install the package; return whether a loaded module was replaced."""
  own = source / f'requirements-py3{sys.version_info.minor}.txt'
  lock = own if own.exists() else source / 'requirements.txt'
  wanted = [f'{source}[{extra}]']
  if accelerator:
    wanted.append(f'jax[{accelerator}]')
  before = _versions()
  pip = sys.executable, '-m', 'pip', 'install', '-q', '-c', lock, '-e', *wanted
  _run(pip, 'pip')
  importlib.invalidate_caches()
  after = _versions()
  changed = {name for name in before if before[name] != after.get(name)}
  return any(
      module in sys.modules and changed.intersection(names)
      for module, names in importlib.metadata.packages_distributions().items()
  )


def _run(command: Sequence[str | os.PathLike], name: str) -> None:
  """Run a command; raise RuntimeError with its last lines if it fails."""
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode:
    lines = '\n'.join(done.stderr.strip().splitlines()[-3:])
    raise RuntimeError(f'{name} failed. Is there a network?\n{lines}')


def _versions() -> dict[str, str]:
  """Return the version of each installed distribution."""
  return {x.name: x.version for x in importlib.metadata.distributions()}


def _restart() -> None:
  """Have the notebook start Python anew."""
  from IPython import get_ipython

  get_ipython().kernel.do_shutdown(restart=True)
