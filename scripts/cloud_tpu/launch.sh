#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a job on a Cloud TPU: makes the machine, installs this commit on it, runs
# the job on all its workers, collects what it wrote, deletes the machine.
#
#   scripts/cloud_tpu/launch.sh --name=<machine> --zone=<zone> --type=v4-8 \
#     --output-dir=gs://<bucket>/<folder> --dry-run \
#     -- simulate --gin.TARGET_SIZE=xxl --gin.DTYPE=bfloat16
#
# What follows -- goes to the program as it is; its output folder is added.
#
# Required: --name, --zone, --type (v2-8, v3-8, v4-8, v5litepod-4, v5p-8, v6e-8
# and larger) and --output-dir: a gs:// folder that the job writes to, or a
# folder here, to which the output of a machine of one host is copied.
#
# Options:
#   --dry-run             prints every command and the chip-hours, runs nothing
#   --program=<program>   speculative-t5x (default), t5x.eval or t5x.infer
#   --chips=1             shows the job one chip of its host; without, all
#   --time-limit=2h       from the machine's start to its deletion (s, m or h)
#   --trace               writes an xprof trace to <output dir>/trace
#   --spot                a spot machine, which may be taken back at any time
#   --queued              waits in the queue, --queue-limit=24h at most
#   --keep                keeps the machine, to look at, until the time limit
#   --project=<project>   without, that of gcloud's configuration
#   --version=<runtime>   without, the usual one of the type
#   --create-flag=<flag>  one more flag of gcloud's create; may be repeated
set -euo pipefail

readonly CALLED_FROM="${PWD}"
JOB_STARTED='no'

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/cloud_tpu/steps.sh
source scripts/cloud_tpu/steps.sh
# shellcheck source=scripts/cloud_tpu/accelerators.sh
source scripts/cloud_tpu/accelerators.sh
# shellcheck source=scripts/cloud_tpu/options.sh
source scripts/cloud_tpu/options.sh
# shellcheck source=scripts/cloud_tpu/login.sh
source scripts/cloud_tpu/login.sh
# shellcheck source=scripts/cloud_tpu/machine.sh
source scripts/cloud_tpu/machine.sh

#######################################
# Sends this commit to all workers, with git's history, so that run records
# name it.
#######################################
send_source() {
  note 'Sends this commit to every worker.'
  step mkdir -p runs/cloud_tpu
  step git bundle create --quiet "${BUNDLE}" HEAD ||
    fail 'git could not bundle this commit.'
  step gcloud compute tpus tpu-vm scp "${BUNDLE}" "${NAME}:source.bundle" \
    --worker=all "${WHERE[@]}" || fail "${NAME} could not be reached."
}

#######################################
# Installs what the program needs on all workers.
#######################################
install() {
  note 'Installs Python 3.11, the pinned packages and this commit.'
  local clone='rm -rf speculative_t5x'
  clone+=' && git clone --quiet source.bundle speculative_t5x'
  clone+=' && cd speculative_t5x && bash scripts/cloud_tpu/worker_setup.sh'
  on_workers "${clone} ${PROGRAM}" || fail "nothing was run: ${NAME} could" \
    'not be set up; the lines above say why.'
}

#######################################
# Runs the job on all workers. Exits with its status unless that is 0.
#######################################
run_job() {
  note 'Runs the job on every worker, and shows what it prints.'
  local -a command=(
    env "CHIPS=${CHIPS}" "NUM_HOSTS=${NUM_HOSTS}" "TRACE=${TRACE}"
    "OUTPUT_DIR=${WORKER_OUTPUT_DIR}"
  )
  # Jobs have a place of their own for what they compile, beside their output.
  if [[ -n ${JAX_COMPILATION_CACHE_DIR-} ]]; then
    command+=("JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR}")
  fi
  command+=(bash speculative_t5x/scripts/cloud_tpu/worker_run.sh)
  command+=("${PROGRAM}" "${JOB[@]}")
  local status=0
  on_workers "$(quoted "${command[@]}")" || status=$?
  ((status == 0)) || explain "${status}"
}

#######################################
# Says why the job ended, and ends with its status.
#######################################
explain() {
  local why='the lines above say why.'
  if [[ $1 == 124 ]]; then
    why='its time was over. Give a longer --time-limit.'
  elif [[ $1 == 137 ]]; then
    why='it was killed, for want of memory or because its time was over.'
  elif [[ ${SPOT} == yes ]]; then
    why='the lines above say why; a spot machine may have been taken back.'
  fi
  echo "error: the job failed with status $1: ${why}" >&2
  exit "$1"
}

#######################################
# Copies the output of the one host here, also that of a job that failed.
#######################################
collect() {
  [[ ${OUTPUT_DIR} != gs://* ]] || return 0
  note 'Copies what the job wrote, and its log.'
  step gcloud compute tpus tpu-vm scp --recurse "${NAME}:output/*" \
    "${NAME}:run/log.txt" "${OUTPUT_DIR}" --worker=0 "${WHERE[@]}" &&
    return 0
  echo "error: the output could not be copied to ${OUTPUT_DIR}." >&2
  return 1
}

#######################################
# Whatever ended this script: collects and deletes, once. What it calls returns
# numbers: a bare return would give the status that the script ended with.
#######################################
finish() {
  local status=$?
  trap '' INT TERM HUP PIPE
  trap - EXIT
  # Whoever reads the output may be gone, as tee is after an interrupt.
  note 'Ends.' 2>/dev/null || exec >/dev/null 2>&1
  stop_step
  [[ ${JOB_STARTED} == no ]] || collect || ((status != 0)) || status=1
  delete_machine || status=1
  [[ ${DRY_RUN} == yes ]] || rm -f "${BUNDLE}"
  [[ ${DRY_RUN} == no || ${status} != 0 ]] || print_chip_hours
  exit "${status}"
}

main() {
  parse_options "$@"
  check_options
  check_tree
  [[ ${DRY_RUN} == yes ]] || check_login
  fill_in_project
  settle
  [[ ${DRY_RUN} == yes ]] || print_chip_hours
  check_name_is_free
  trap finish EXIT
  trap 'exit 129' HUP
  trap 'exit 141' PIPE
  trap 'exit 130' INT
  trap 'exit 143' TERM
  create_machine
  send_source
  install
  JOB_STARTED=yes
  run_job
}

main "$@"
