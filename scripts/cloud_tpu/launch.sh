#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a job on a Cloud TPU: creates the machine, installs this commit on it,
# runs the job on all its workers, collects the output and deletes the machine.
#
#   scripts/cloud_tpu/launch.sh --name=<machine> --zone=<zone> --type=v4-8 \
#     --output-dir=gs://<bucket>/<folder> --dry-run \
#     -- simulate --gin.TARGET_SIZE=xxl --gin.DTYPE=bfloat16
#
# Arguments after -- are passed to the program, and its output folder is added.
#
# Required: --name, --zone, --type (v2-8, v3-8, v4-8, v5litepod-4, v5p-8, v6e-8
# and larger) and --output-dir: a gs:// folder that the job writes to, or a
# local folder, to which the output of a single-host machine is copied.
#
# Options:
#   --dry-run             prints all commands and the chip-hours, runs nothing
#   --program=<program>   speculative-t5x (default), t5x.train, t5x.eval or
#                         t5x.infer
#   --chips=1             lets the job use one chip of its host; default: all
#   --time-limit=2h       from the machine's start to its deletion (s, m or h)
#   --trace               writes an xprof trace to <output dir>/trace
#   --spot                uses a spot machine, which may be preempted
#   --queued              waits in the queue, at most --queue-limit=24h
#   --keep                keeps the machine for inspection until the time limit
#   --project=<project>   default: the project of gcloud's configuration
#   --version=<runtime>   default: the standard runtime of the type
#   --create-flag=<flag>  a further flag of gcloud's create; may be repeated
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
# Sends this commit with its git history to all workers, so that run records can
# name the commit.
#######################################
send_source() {
  note 'Send this commit to every worker.'
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
  note 'Install Python 3.11, the pinned packages and this commit.'
  local clone='rm -rf speculative_t5x'
  clone+=' && git clone --quiet source.bundle speculative_t5x'
  clone+=' && cd speculative_t5x && bash scripts/cloud_tpu/worker_setup.sh'
  on_workers "${clone} ${PROGRAM}" || fail "${NAME} could not be set up, and" \
    'the job was not run; the lines above give the reason.'
}

#######################################
# Runs the job on all workers. Exits with its status unless that is 0.
#######################################
run_job() {
  note 'Run the job on every worker and show its output.'
  local -a command=(
    env "CHIPS=${CHIPS}" "NUM_HOSTS=${NUM_HOSTS}" "TRACE=${TRACE}"
    "OUTPUT_DIR=${WORKER_OUTPUT_DIR}"
  )
  # Without this variable, jobs put their compilation cache beside their output.
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
# Prints why the job failed, and exits with its status.
#######################################
explain() {
  local why='the lines above give the reason.'
  if [[ $1 == 124 ]]; then
    why='it reached the time limit. Give a longer --time-limit.'
  elif [[ $1 == 137 ]]; then
    why='it was killed, because memory ran out or at the time limit.'
  elif [[ ${SPOT} == yes ]]; then
    why='the lines above give the reason; spot machines may be preempted.'
  fi
  echo "error: the job failed with status $1: ${why}" >&2
  exit "$1"
}

#######################################
# Copies the output of a single host to this computer, also if the job failed.
#######################################
collect() {
  [[ ${OUTPUT_DIR} != gs://* ]] || return 0
  note "Copy the job's output and its log."
  step gcloud compute tpus tpu-vm scp --recurse "${NAME}:output/*" \
    "${NAME}:run/log.txt" "${OUTPUT_DIR}" --worker=0 "${WHERE[@]}" &&
    return 0
  echo "error: the output could not be copied to ${OUTPUT_DIR}." >&2
  return 1
}

#######################################
# Collects the output and deletes the machine, once, however this script ends.
# The functions it calls return explicit numbers: a bare return would give the
# exit status of the script.
#######################################
finish() {
  local status=$?
  trap '' INT TERM HUP PIPE
  trap - EXIT
  # The reader of the output may have ended, as tee does after an interrupt.
  note 'End.' 2>/dev/null || exec >/dev/null 2>&1
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
