#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sets up a worker: worker_setup.sh <program>, run in the worker's checkout.
#
# The images have Python 3.10. uv installs a separate Python 3.11 and leaves the
# system's unchanged. The system's pip installs uv in the version of
# requirements.txt.
set -euo pipefail

readonly VENV="${HOME}/venv"
# The same commits as in docs/t5x.md.
readonly T5X_REPOSITORIES=(
  'google-research/t5x cc342d419ec3e3e9c4bf1df33c82330cafdc1e16'
  'google/airio 69897df7d9a427b947a9f7bb4164c7782b43e601'
  'google-research/jestimator 326824a477feef6d92e6f44175000907a72899ca'
)

#######################################
# Makes sure that the machine will be deleted, and enables huge pages, without
# which JAX starts slowly on v5e and newer.
#######################################
prepare_machine() {
  sudo bash scripts/cloud_tpu/worker_guard.sh
  sudo sh -c 'echo always >/sys/kernel/mm/transparent_hugepage/enabled' ||
    echo 'warning: no huge pages; JAX will start slowly.' >&2
}

uv() {
  python3 -m uv "$@"
}

install_package() {
  local pinned
  pinned="$(grep '^uv==' requirements.txt)"
  python3 -m pip install --quiet --user "${pinned}"
  uv venv --quiet --clear --python 3.11 "${VENV}"
  uv pip install --quiet --python "${VENV}" -r requirements-tpu.txt
  # Editable, so that run records can name the commit.
  uv pip install --quiet --python "${VENV}" --no-deps -e .
}

#######################################
# Installs T5X and the two packages that are on no package index, beside the
# checkout.
#######################################
install_t5x() {
  local repository name commit folder
  for repository in "${T5X_REPOSITORIES[@]}"; do
    read -r name commit <<<"${repository}"
    folder="${HOME:?}/${name#*/}"
    rm -rf "${folder}"
    git clone --quiet "https://github.com/${name}" "${folder}"
    git -C "${folder}" checkout --quiet "${commit}"
  done
  uv pip install --quiet --python "${VENV}" -r requirements-t5x.txt
}

main() {
  prepare_machine
  install_package
  [[ $1 != t5x.* ]] || install_t5x
}

main "$@"
