# Processes, ports and readiness. Takes a unit's directory and name; keeps NAME.pid and NAME.log there.
# Never signals a pid whose process is not the one that was started.

# birth PID: when it was started, in ticks since boot; nothing if it is gone or a zombie.
birth() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" && $1 != "X" { print $20 }'; }
boot() { cat /proc/sys/kernel/random/boot_id; }

# alive DIR UNIT: is the process that was started as UNIT still there? A pid alone may be somebody else's by now.
alive() {
    local pid born booted
    [ -f "$1/$2.pid" ] && read -r pid born booted <"$1/$2.pid" &&
        [ -n "$booted" ] && [ "$booted" = "$(boot)" ] && [ "$(birth "$pid")" = "$born" ]
}

# spawn DIR UNIT COMMAND...: in a session of its own, so that it outlives this script and its terminal.
spawn() {
    local dir=$1 unit=$2 pid
    shift 2
    setsid "$@" >"$dir/$unit.log" 2>&1 </dev/null 8>&- 9>&- &
    pid=$!
    disown "$pid"
    echo "$pid $(birth "$pid") $(boot)" >"$dir/$unit.pid"
}

# signal SIGNAL DIR UNIT: to the unit and its children.
signal() {
    local pid
    alive "$2" "$3" || return 0
    read -r pid _ <"$2/$3.pid"
    kill -s "$1" -- "-$pid" 2>/dev/null || kill -s "$1" "$pid" 2>/dev/null || true
}

# stop SIGNAL DIR UNIT: returns when the unit has ended; after five seconds it has no choice.
stop() {
    local limit=$((SECONDS + 5))
    signal "$1" "$2" "$3"
    while alive "$2" "$3"; do
        [ "$SECONDS" -lt "$limit" ] || signal KILL "$2" "$3"
        sleep 0.05
    done
    rm -f "$2/$3.pid"
}

# free_ports N: below the range the kernel hands out itself, so that a port is still free after a kill.
free_ports() {
    local low port found=() tries
    read -r low _ </proc/sys/net/ipv4/ip_local_port_range
    [ "$low" -gt 12000 ] || low=30000
    for ((tries = 0; tries < 1000 && ${#found[@]} < $1; tries++)); do
        port=$((10000 + (RANDOM * 32768 + RANDOM) % (low - 10000)))
        if [[ " ${found[*]-} " != *" $port "* ]] && ! answers 127.0.0.1 "$port"; then found+=("$port"); fi
    done
    [ "${#found[@]}" -eq "$1" ] || die 'no free port'
    echo "${found[@]}"
}
answers() { timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2"' - "$1" "$2" 2>/dev/null; }

# listens DIR UNIT PORT: is it this unit that listens there? Another instance may have been faster.
listens() {
    local pid inode
    read -r pid _ <"$1/$2.pid"
    inode=$(awk -v at="$(printf '0100007F:%04X' "$3")" '$2 == at && $4 == "0A" { print $10 }' /proc/net/tcp)
    [ -n "$inode" ] && find "/proc/$pid/fd" -lname "socket:\[$inode\]" 2>/dev/null | grep -q .
}

# await DIR UNIT PORT PROBE...: until the unit listens on PORT and PROBE succeeds.
await() {
    local dir=$1 unit=$2 port=$3 limit=$((SECONDS + TIMEOUT))
    shift 3
    until listens "$dir" "$unit" "$port" && "$@" >/dev/null 2>&1; do
        alive "$dir" "$unit" || { complain "$dir" "$unit" 'ended before it was ready'; return 1; }
        [ "$SECONDS" -lt "$limit" ] || { complain "$dir" "$unit" "is not ready after $TIMEOUT s"; return 1; }
        sleep 0.1
    done
}
complain() {
    say "$2 $3; the end of $1/$2.log:"
    tail -n 20 "$1/$2.log" 2>/dev/null | sed 's/^/    /' >&2
}
