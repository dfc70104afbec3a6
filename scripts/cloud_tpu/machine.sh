# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Creates the machine, directly or by the queue, connects to it and deletes it.
#
# This script deletes the machine however it ends. If this computer fails, a
# guard on the machine (worker_guard.sh) deletes it at the time limit.

MACHINE='none' # then 'requested', then 'ready'

readonly POLL_S=30
readonly DELETE_TRIES=3

#######################################
# Fails if the name is in use: the existing machine would be deleted at the end.
#######################################
check_name_is_free() {
  note 'Stop if the name is in use.'
  local kind names
  for kind in tpu-vm queued-resources; do
    local -a command=(
      gcloud compute tpus "${kind}" list "${WHERE[@]}"
      '--format=value(name.basename())'
    )
    if [[ ${DRY_RUN} == yes ]]; then
      step "${command[@]}"
      continue
    fi
    names="$("${command[@]}")" ||
      fail "gcloud cannot list the TPUs of ${PROJECT} in ${ZONE}; the lines" \
        'above give the reason.'
    ! grep -qFx -- "${NAME}" <<<"${names}" ||
      fail "${NAME} exists already in ${ZONE}. Give another --name."
  done
}

#######################################
# Sets the command that deletes the machine; its guard runs the same command.
#######################################
set_delete_command() {
  if [[ ${QUEUED} == yes ]]; then
    DELETE_COMMAND=(gcloud compute tpus queued-resources delete "${NAME}"
      --force "${WHERE[@]}")
  else
    DELETE_COMMAND=(gcloud compute tpus tpu-vm delete "${NAME}" "${WHERE[@]}")
  fi
}

#######################################
# Creates the machine with its guard, and waits until it is ready.
#######################################
create_machine() {
  set_delete_command
  local metadata="time-limit-s=${TIME_LIMIT_S}"
  metadata+=",delete-command=${DELETE_COMMAND[*]}"
  local guard='startup-script=scripts/cloud_tpu/worker_guard.sh'
  local -a flags=("--accelerator-type=${TYPE}" "--metadata=${metadata}"
    "--metadata-from-file=${guard}")
  [[ ${SPOT} == no ]] || flags+=(--spot)
  flags+=("${CREATE_FLAGS[@]}" "${WHERE[@]}")
  # From here on a machine may exist, even if the command fails.
  MACHINE='requested'
  if [[ ${QUEUED} == yes ]]; then
    create_by_queue "${flags[@]}"
  else
    note 'Create the machine, with a guard that deletes it at the time limit.'
    step gcloud compute tpus tpu-vm create "${NAME}" \
      "--version=${RUNTIME}" "${flags[@]}" ||
      fail "${NAME} could not be created; the lines above give the reason."
  fi
  MACHINE='ready'
}

#######################################
# Requests the machine from the queue, and waits for it.
#######################################
create_by_queue() {
  note 'Request the machine, with a guard that deletes it at the time limit.'
  step gcloud compute tpus queued-resources create "${NAME}" \
    "--node-id=${NAME}" "--runtime-version=${RUNTIME}" \
    "--valid-until-duration=${QUEUE_LIMIT_S}s" "$@" ||
    fail "${NAME} could not be requested; the lines above give the reason."
  note "Check every ${POLL_S} s whether it is ACTIVE, for at most" \
    "${QUEUE_LIMIT_S} s."
  local -a look=(gcloud compute tpus queued-resources describe "${NAME}"
    '--format=value(state.state)' "${WHERE[@]}")
  if [[ ${DRY_RUN} == yes ]]; then
    step "${look[@]}"
  else
    wait_until_active "${look[@]}"
  fi
}

wait_until_active() {
  local state='' last='' waited=0
  while ((waited <= QUEUE_LIMIT_S)); do
    # A failed query must not lose the place in the queue.
    state="$("$@")" || state='unknown'
    [[ ${state} == "${last}" ]] || echo "${NAME} is ${state}." >&2
    case "${state}" in
      ACTIVE) return ;;
      FAILED | SUSPENDING | SUSPENDED)
        fail "the queue provided no machine: ${NAME} is ${state}." ;;
    esac
    last="${state}"
    sleep "${POLL_S}" &
    wait $!
    waited=$((waited + POLL_S))
  done
  fail "the queue provided no machine in ${QUEUE_LIMIT_S} s. Give a longer" \
    '--queue-limit, or another zone.'
}

#######################################
# Runs a command on all workers. Ends it at the time limit, in case a worker no
# longer answers.
#######################################
on_workers() {
  step timeout "${TIME_LIMIT_S}" gcloud compute tpus tpu-vm ssh "${NAME}" \
    --worker=all "${WHERE[@]}" "--command=$1"
}

#######################################
# Deletes the machine, unless none was requested or --keep was given.
#######################################
delete_machine() {
  [[ ${MACHINE} != 'none' ]] || return 0
  if [[ ${KEEP} == yes && ${MACHINE} == 'ready' ]]; then
    say_how_to_delete
    return 0
  fi
  note 'Delete the machine.'
  local try
  for ((try = 1; try <= DELETE_TRIES; try++)); do
    ! step "${DELETE_COMMAND[@]}" || return 0
  done
  echo "error: ${NAME} could not be deleted, and is billed while it exists." \
    "Delete it: $(quoted "${DELETE_COMMAND[@]}")" >&2
  return 1
}

say_how_to_delete() {
  note "${NAME} is kept until the time limit. To delete it now:"
  note "  $(quoted "${DELETE_COMMAND[@]}")"
  note 'To keep it longer, run there: sudo systemctl stop cloud-tpu-guard.timer'
}
