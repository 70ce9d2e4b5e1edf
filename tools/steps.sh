# tools/steps.sh - shows how far a long command is, and keeps its output in a log. `./run` reads this file
# with `.`.

logs=build/logs # the output of each step
num_steps=0     # of this call of ./run. Steps that have nothing to do count, too
step_number=0
watcher=

# fail TEXT: ends ./run with a reason, and with the log of the last step if that one failed.
fail() {
    echo "run: $*" >&2
    [ -z "${failed_log:-}" ] || echo "run: the log is $failed_log" >&2
    exit 1
}

# step TEXT LOG HOW_FAR COMMAND...: runs a command with its output in $logs/LOG.log. While it runs, a line
# says what happens and what `HOW_FAR file` prints about the log: on a terminal one line that changes, and
# elsewhere a line every four seconds. Returns the status of the command. A command that takes less than a
# second is not mentioned.
step() {
    step_text="[$step_number/$num_steps] $1" step_log=$logs/$2.log step_far=$3
    shift 3
    mkdir -p "$logs"
    : >"$step_log"
    step_begin=$(date +%s)
    watch_step &
    watcher=$!
    step_status=0
    "$@" >"$step_log" 2>&1 </dev/null 3>&- || step_status=$?
    end_watch
    step_seconds=$(($(date +%s) - step_begin))
    if [ "$step_status" != 0 ]; then
        failed_log=$step_log
    elif [ $step_seconds -gt 1 ]; then
        say_step "$step_text: done in $step_seconds s"
        [ ! -t 3 ] || echo >&3
    fi
    return $step_status
}

# The progress is shown by a process in the background. So the command is in the foreground, where Ctrl-C
# reaches it, and where sudo has its terminal.
watch_step() {
    trap - EXIT INT TERM HUP QUIT PIPE
    seconds=0
    # The output of sleep is closed, because a reader of this script's output would wait for it.
    while kill -0 $$ 2>/dev/null && sleep 1 >/dev/null 2>&1 3>&-; do
        seconds=$((seconds + 1))
        [ -t 3 ] || [ $((seconds % 4)) = 1 ] || continue
        far=$($step_far "$step_log")
        say_step "$step_text${far:+: $far} ($seconds s)"
    done
}
# A signal that can be caught might come before the process has reset its traps.
end_watch() {
    [ -n "$watcher" ] || return 0
    kill -KILL "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    watcher=
    [ ! -t 3 ] || printf '\r\033[K' >&3
}
say_step() {
    if [ -t 3 ]; then printf '\r\033[K%.79s' "$1" >&3; else echo "$1" >&3; fi
}

# Ways to say how far a command is. Each gets the name of the log.
last_line() { tail -n 1 "$1" | cut -c1-40; }
# Prints how many commands ninja has executed.
commands_done() {
    sed -n 's,^\[\([0-9]*\)/\([0-9]*\)\].*,\1 of \2,p' "$1" | tail -n 1
}
