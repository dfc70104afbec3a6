#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# What launch.sh runs on each host:
#   worker.sh set_up <program>
#   worker.sh run <arguments of worker_main.py>, with CHIPS and END_AT
set -euo pipefail

readonly RUN="${HOME}/run" VENV="${HOME}/venv"
# The same commits as in docs/t5x.md.
readonly T5X_REPOSITORIES=(
  'google-research/t5x cc342d419ec3e3e9c4bf1df33c82330cafdc1e16'
  'google/airio 69897df7d9a427b947a9f7bb4164c7782b43e601'
  'google-research/jestimator 326824a477feef6d92e6f44175000907a72899ca'
)

# Installs Python 3.11, as the image has 3.10, the pinned packages, and this
# commit as editable, so that run records can name it.
set_up() {
  timeout 300 bash -c 'until systemctl is-active --quiet cloud-tpu-guard.timer
    do sleep 2; done' || { echo 'error: the guard is missing.' && exit 1; }
  python3 -m pip install --quiet --user "$(grep '^uv==' requirements.txt)"
  python3 -m uv venv --quiet --clear --python 3.11 "${VENV}"
  local -a install=(python3 -m uv pip install --quiet --python "${VENV}")
  "${install[@]}" -r requirements-tpu.txt
  "${install[@]}" --no-deps -e .
  [[ $1 == t5x.* ]] || return 0
  printf '%s\n' "${T5X_REPOSITORIES[@]}" | while read -r name commit; do
    git clone --quiet "https://github.com/${name}" "${HOME}/${name#*/}"
    git -C "${HOME}/${name#*/}" checkout --quiet "${commit}"
  done
  "${install[@]}" -r requirements-t5x.txt
}

# Starts the job, and shows its output until it ends. gcloud runs this again
# when the connection breaks: the job still runs then, and is only shown.
run() {
  mkdir -p "${RUN}"
  if mkdir "${RUN}/started" 2>/dev/null; then
    setsid --fork bash "${BASH_SOURCE[0]}" job "$@" \
      </dev/null >"${RUN}/log.txt" 2>&1
  fi
  until [[ -s ${RUN}/pid ]]; do sleep 0.1; done
  tail --lines=+1 --follow --sleep-interval=0.2 --pid="$(<"${RUN}/pid")" \
    "${RUN}/log.txt"
  exit "$(<"${RUN}/status")"
}

job() {
  echo $$ >"${RUN}/pid"
  trap 'echo $? >"${RUN}/status"' EXIT
  cd "${HOME}/speculative_t5x"
  # One chip as a complete TPU: without the bounds, libtpu waits for the others.
  [[ ${CHIPS} == all ]] || export TPU_VISIBLE_CHIPS=0 TPU_PROCESS_BOUNDS=1,1,1 \
    TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1
  # Without a TPU the job fails; by default JAX would use the CPU silently.
  export JAX_PLATFORMS="${JAX_PLATFORMS:-tpu,cpu}" PYTHONUNBUFFERED=1
  export PYTHONPATH="${HOME}/t5x:${HOME}/airio:${HOME}/jestimator"
  local left=$((END_AT - $(date +%s)))
  ((left > 0)) || { echo 'error: no time is left.' && exit 124; }
  # An interrupt, after which finished work is kept and can be resumed.
  timeout --signal=INT --kill-after=60 "${left}" "${VENV}/bin/python" \
    -m scripts.cloud_tpu.worker_main "$@"
}

"$@"
