#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs the job on a worker: worker_job.sh <program> <its arguments>.
#
# Settings are environment variables: CHIPS (1 or all), NUM_HOSTS, TRACE (yes or
# no) and OUTPUT_DIR (gs://..., or a folder in the home folder).
set -euo pipefail

readonly RUN="${HOME}/run"
# The job is ended this many seconds before the machine's deletion, so that the
# output can be collected.
readonly COLLECT_S=300
readonly DELETE_AT="${GUARD_FOLDER:-/var/lib/cloud_tpu_guard}/delete_at"

#######################################
# Makes one chip of the host visible to JAX, as a complete TPU. Otherwise libtpu
# takes all chips; without the bounds it waits for the other chips.
#######################################
take_one_chip() {
  export TPU_VISIBLE_CHIPS=0
  export TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1
  export TPU_PROCESS_BOUNDS=1,1,1
}

main() {
  echo $$ >"${RUN}/pid"
  trap 'echo $? >"${RUN}/status"' EXIT
  cd "${HOME}/speculative_t5x"
  [[ ${CHIPS} == all ]] || take_one_chip
  [[ ${OUTPUT_DIR} == gs://* ]] || OUTPUT_DIR="${HOME}/${OUTPUT_DIR}"
  local left=$(($(<"${DELETE_AT}") - $(date +%s) - COLLECT_S))
  ((left > 0)) || { echo 'error: no time is left for the job.' && exit 124; }
  # Makes a job fail without a TPU; by default JAX would silently use the CPU.
  export JAX_PLATFORMS="${JAX_PLATFORMS:-tpu,cpu}" PYTHONUNBUFFERED=1
  export PYTHONPATH="${HOME}/t5x:${HOME}/airio:${HOME}/jestimator"
  local -a flags=("--num_hosts=${NUM_HOSTS}" "--output_dir=${OUTPUT_DIR}")
  [[ ${TRACE} == no ]] || flags+=(--trace)
  # An interrupt, after which jobs keep finished work and can be resumed.
  timeout --signal=INT --kill-after=60 "${left}" "${HOME}/venv/bin/python" \
    -m scripts.cloud_tpu.worker_main "${flags[@]}" "$@"
}

main "$@"
