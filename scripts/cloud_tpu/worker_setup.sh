#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sets up a worker: worker_setup.sh <program>, in the checkout there.
#
# The images come with Python 3.10. uv brings a 3.11 of its own, touches nothing
# of the system's, and is installed by the system's pip in the version of
# requirements.txt.
set -euo pipefail

readonly VENV="${HOME}/venv"
# As docs/t5x.md has them.
readonly T5X_REPOSITORIES=(
  'google-research/t5x cc342d419ec3e3e9c4bf1df33c82330cafdc1e16'
  'google/airio 69897df7d9a427b947a9f7bb4164c7782b43e601'
  'google-research/jestimator 326824a477feef6d92e6f44175000907a72899ca'
)

#######################################
# Makes sure that the machine will be deleted, and lets it start JAX fast: on
# v5e and newer that needs large pages.
#######################################
prepare_machine() {
  sudo bash scripts/cloud_tpu/worker_guard.sh
  sudo sh -c 'echo always >/sys/kernel/mm/transparent_hugepage/enabled' ||
    echo 'warning: no large pages; JAX will start slowly.' >&2
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
  # In place, so that run records name the commit.
  uv pip install --quiet --python "${VENV}" --no-deps -e .
}

#######################################
# T5X and the two packages that are on no package index, beside the checkout.
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
  uv pip install --quiet --python "${VENV}" --no-deps t5==0.9.4
}

main() {
  prepare_machine
  install_package
  [[ $1 != t5x.* ]] || install_t5x
}

main "$@"
