# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The machine: made directly or by the queue, reached, deleted.
#
# It is deleted by this script however that ends. In case this computer dies,
# the machine has a guard (worker_guard.sh) that deletes it at the time limit.

MACHINE='none' # then 'asked for', then 'ready'

readonly POLL_S=30
readonly DELETE_TRIES=3

#######################################
# Refuses a name in use: the machine that has it would be deleted in the end.
#######################################
check_name_is_free() {
  note 'Stops if something has the name.'
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
        'above say why.'
    ! grep -qFx -- "${NAME}" <<<"${names}" ||
      fail "${NAME} exists already in ${ZONE}. Give another --name."
  done
}

#######################################
# Sets the command that deletes the machine, which its guard runs too.
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
# Makes the machine, with its guard, and waits until it is there.
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
  # From here on there may be a machine, even if the command fails.
  MACHINE='asked for'
  if [[ ${QUEUED} == yes ]]; then
    create_by_queue "${flags[@]}"
  else
    note 'Makes the machine, with a guard that deletes it at the time limit.'
    step gcloud compute tpus tpu-vm create "${NAME}" \
      "--version=${RUNTIME}" "${flags[@]}" ||
      fail "${NAME} could not be made; the lines above say why."
  fi
  MACHINE='ready'
}

#######################################
# Asks the queue for the machine, and waits for it.
#######################################
create_by_queue() {
  note 'Asks for the machine, with a guard that deletes it at the time limit.'
  step gcloud compute tpus queued-resources create "${NAME}" \
    "--node-id=${NAME}" "--runtime-version=${RUNTIME}" \
    "--valid-until-duration=${QUEUE_LIMIT_S}s" "$@" ||
    fail "${NAME} could not be asked for; the lines above say why."
  note "Looks every ${POLL_S} s until it is ACTIVE, for ${QUEUE_LIMIT_S} s at" \
    'most.'
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
    # A look that fails is no reason to give the place in the queue away.
    state="$("$@")" || state='unknown'
    [[ ${state} == "${last}" ]] || echo "${NAME} is ${state}." >&2
    case "${state}" in
      ACTIVE) return ;;
      FAILED | SUSPENDING | SUSPENDED)
        fail "the queue gave no machine: ${NAME} is ${state}." ;;
    esac
    last="${state}"
    sleep "${POLL_S}" &
    wait $!
    waited=$((waited + POLL_S))
  done
  fail "the queue gave no machine in ${QUEUE_LIMIT_S} s. Give a longer" \
    '--queue-limit, or another zone.'
}

#######################################
# Runs a command on all workers at once; ends it here at the time limit, should
# a worker no longer answer.
#######################################
on_workers() {
  step timeout "${TIME_LIMIT_S}" gcloud compute tpus tpu-vm ssh "${NAME}" \
    --worker=all "${WHERE[@]}" "--command=$1"
}

#######################################
# Deletes the machine, unless it was never made or is to be kept.
#######################################
delete_machine() {
  [[ ${MACHINE} != 'none' ]] || return 0
  if [[ ${KEEP} == yes && ${MACHINE} == 'ready' ]]; then
    say_how_to_delete
    return 0
  fi
  note 'Deletes the machine.'
  local try
  for ((try = 1; try <= DELETE_TRIES; try++)); do
    ! step "${DELETE_COMMAND[@]}" || return 0
  done
  echo "error: ${NAME} could not be deleted, and costs if it exists. Delete" \
    "it: $(quoted "${DELETE_COMMAND[@]}")" >&2
  return 1
}

say_how_to_delete() {
  note "${NAME} is kept until the time limit. To delete it now:"
  note "  $(quoted "${DELETE_COMMAND[@]}")"
  note 'To keep it longer, on it: sudo systemctl stop cloud-tpu-guard.timer'
}
