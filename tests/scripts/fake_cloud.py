# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A fake gcloud that follows the test, and a checkout to launch from.

No TPU, account or network is needed.
"""

import os
import pathlib
import shlex
import shutil
import subprocess

CHECKOUT = pathlib.Path(__file__).parents[2]
SECONDS = 120  # a test fails if it waits longer
LAUNCH = 'scripts/cloud_tpu/launch.sh'
# Flags of every command line.
REQUIRED = ('--name=mine', '--zone=a-zone-b')
BUCKET = '--output-dir=gs://bucket/runs/x'
RUN = ('--project=p', *REQUIRED, '--type=v4-8', BUCKET)

# Settings of the user who runs the tests.
_UNSET = ('JAX_COMPILATION_CACHE_DIR', 'JAX_PLATFORMS', 'PYTHONPATH')

# Notes each call, answers what is asked, hangs or fails at calls of a pattern,
# and leaves the others to the program that plays the machine.
_GCLOUD = r"""#!/usr/bin/env bash
printf '%q ' "$@" >>"${LOG}"
echo >>"${LOG}"
case "$*" in
  'auth list'*) echo "${ACCOUNT-someone}" ;;
  'config get-value'*) echo "${CONFIGURED-}" ;;
  *' list '*) echo "${NAMES-}" ;;
  *' describe '*)
    state="$(head -1 "${STATES}")"
    sed -i 1d "${STATES}"
    echo "${state}"
    ;;
esac
if [[ "$*" == ${HANGS-} ]]; then exec tail -f /dev/null; fi
if [[ "$*" == ${FAILS-} ]]; then exit "${STATUS-1}"; fi
if [[ -n "${ON_WORKER-}" ]]; then exec "${ON_WORKER}" "$@"; fi
"""


def write_program(path: pathlib.Path, text: str) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)
  path.chmod(0o755)


def _git(checkout: pathlib.Path, *arguments: str) -> None:
  identity = ['-c', 'user.name=n', '-c', 'user.email=e@example.org']
  subprocess.run(
      ['git', *identity, *arguments], cwd=checkout, check=True,
      capture_output=True,
  )  # fmt: skip


class Cloud:
  """A checkout with one commit, and a gcloud that records its calls."""

  def __init__(self, folder: pathlib.Path):
    self.folder = folder
    self.checkout = folder / 'checkout'
    self.log = folder / 'log'
    self.states = folder / 'states'
    self.bin = folder / 'bin'
    shutil.copytree(
        CHECKOUT / 'scripts/cloud_tpu',
        self.checkout / 'scripts/cloud_tpu',
        ignore=shutil.ignore_patterns('__pycache__'),
    )
    shutil.copytree(CHECKOUT / 'configs', self.checkout / 'configs')
    (self.checkout / 'speculative_t5x/jobs/command_line').mkdir(parents=True)
    shutil.copy(
        CHECKOUT / 'speculative_t5x/jobs/command_line/commands.py',
        self.checkout / 'speculative_t5x/jobs/command_line',
    )
    for path in CHECKOUT.glob('requirements*.txt'):
      (self.checkout / path.name).symlink_to(path)
    (self.checkout / '.gitignore').write_text('/runs/\n__pycache__/\n')
    _git(self.checkout, 'init', '--quiet')
    _git(self.checkout, 'add', '.')
    _git(self.checkout, 'commit', '--quiet', '-m', 'A commit')
    self.log.touch()
    write_program(self.bin / 'gcloud', _GCLOUD)
    # Polls of the queue do not wait.
    write_program(self.bin / 'sleep', '#!/bin/sh\nexit 0\n')

  def environment(self, **settings: str) -> dict[str, str]:
    own = dict(
        PATH=f'{self.bin}:{os.environ["PATH"]}',
        LOG=str(self.log),
        STATES=str(self.states),
        HOME=str(self.folder),
    )
    kept = {k: v for k, v in os.environ.items() if k not in _UNSET}
    return {**kept, **own, **settings}

  def launch(self, *arguments: str, **settings: str):
    """Runs launch.sh and returns the ended process."""
    return subprocess.run(
        [str(self.checkout / LAUNCH), *arguments],
        cwd=self.folder,
        env=self.environment(**settings),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )

  def calls(self) -> list[list[str]]:
    """Returns the calls of gcloud, except for queries about gcloud itself."""
    lines = [shlex.split(line) for line in self.log.read_text().splitlines()]
    return [x[2:] for x in lines if x[:2] == ['compute', 'tpus']]

  def verbs(self) -> list[str]:
    return [' '.join(call[:2]) for call in self.calls()]

  def only(self, *names: str) -> str:
    """Returns a folder for PATH with some of the system's programs."""
    folder = self.folder / 'few'
    folder.mkdir()
    for name in names:
      (folder / name).symlink_to(shutil.which(name))
    return str(folder)
