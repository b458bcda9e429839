# One service, whatever it is and wherever it comes from. Its directory in the state holds
#   from      path, docker or packages: it is up, or killed and to be started again; without it, it is down
#   address   what the tests are given;  ports, units   what it was started with
#   data/, UNIT.pid, UNIT.log
# Address and ports outlive `down`, so that a shell that has evaluated `env` stays right after the next `up`.

# given SERVICE: the address in the environment, unless it is one that came from this script.
given() {
    local variable=${VARIABLE[$1]}
    local address=${!variable-}
    [ -n "$address" ] && [ "$address" != "$(recall "$1" address)" ] && echo "$address"
}
recall() { cat "$STATE/$1/$2" 2>/dev/null || true; }
is_up() { [ -f "$STATE/$1/from" ]; }

service_up() {
    local service=$1 dir=$STATE/$1 address from
    if address=$(given "$service"); then
        reachable "$address" || die "$service: nothing answers at $(public "$address"), which ${VARIABLE[$service]} names; unset it to have one started"
        say "$service is at $(public "$address") (${VARIABLE[$service]})"
        return
    fi
    mkdir -p "$dir"
    if is_up "$service"; then
        if [ "$service" = etcd ] && [ "$(recall etcd units)" != "$(etcd_units)" ]; then
            die "etcd runs as $(recall etcd units); to change that: scripts/services down etcd"
        fi
        resume "$service" "$(recall "$service" units)" || die "$service cannot be started"
    else
        from=$(choose "$service")
        [ "$from" != packages ] || "${service}_fetch"
        begin "$service" "$from"
    fi
    say "$service is at $(recall "$service" address) ($(recall "$service" from))"
}

# choose SERVICE: the first way to have it on this machine.
choose() {
    local from
    for from in $FROM; do
        case $from in
            path) if "${1}_on_path"; then break; fi ;;
            docker) if docker_runs; then break; fi ;;
            packages) break ;;
        esac
        from=
    done
    [ -n "$from" ] || die "$1: none of \"$FROM\" (FLARE_SERVICES_FROM) is here, and ${VARIABLE[$1]} names no server"
    echo "$from"
}

# begin SERVICE FROM: on new data. A port that was free a moment ago may be taken: then it is tried on others.
begin() {
    local service=$1 dir=$STATE/$1 try ports
    for try in 1 2 3; do
        rm -rf "$dir/data" "$dir"/*.log
        if [ "$try" -gt 1 ] || ! ports=$(same_ports "$service"); then ports=$(free_ports "$("${service}_ports")"); fi
        echo "$ports" >"$dir/ports"
        "${service}_units" >"$dir/units"
        # shellcheck disable=SC2086
        "${service}_address" $ports >"$dir/address"
        echo "$2" >"$dir/from"
        if resume "$service" "$(recall "$service" units)"; then return; fi
        end "$service"
        if ! grep -qisE 'address already in use|EADDRINUSE' "$dir"/*.log; then break; fi
    done
    die "$service cannot be started from $2"
}
same_ports() {
    local port ports
    read -ra ports < <(recall "$1" ports)
    [ "${#ports[@]}" -eq "$("${1}_ports")" ] || return 1
    for port in "${ports[@]}"; do
        if answers 127.0.0.1 "$port"; then return 1; fi
    done
    echo "${ports[@]}"
}

# resume SERVICE UNITS: starts those that do not run, on the data and ports they have, and waits for all.
resume() {
    local service=$1 dir=$STATE/$1 from unit ports
    from=$(recall "$service" from)
    read -ra ports <"$dir/ports"
    if [ "$from" = docker ]; then
        docker_up "$service" || return 1
        return
    fi
    for unit in $2; do
        alive "$dir" "$unit" || "${service}_launch" "$dir" "$unit" "$from" "${ports[@]}" || return 1
    done
    for unit in $2; do
        await "$dir" "$unit" "$(port_of "$service" "$unit")" "${service}_ready" "$(port_of "$service" "$unit")" || return 1
    done
}
port_of() {
    local units ports i
    read -ra units <"$STATE/$1/units"
    read -ra ports <"$STATE/$1/ports"
    for i in "${!units[@]}"; do
        if [ "${units[i]}" = "$2" ]; then echo "${ports[i]}"; fi
    done
}

service_down() {
    [ -d "$STATE/$1" ] || return 0
    end "$1"
    rm -f "$STATE/$1"/*.log
}
# Nobody reads the data again, so there is no need to end politely.
end() {
    local dir=$STATE/$1 pid
    if [ "$(recall "$1" from)" = docker ]; then docker_down "$1"; fi
    for pid in "$dir"/*.pid; do
        if [ -f "$pid" ]; then stop KILL "$dir" "$(basename "$pid" .pid)"; fi
    done
    "${1}_drop" "$dir"
    rm -rf "$dir/data" "$dir/from" "$dir/units"
}

service_env() {
    local address
    address=$(given "$1") || { is_up "$1" && address=$(recall "$1" address); } || return 1
    printf 'export %s=%s\n' "${VARIABLE[$1]}" "${address@Q}"
}

service_status() {
    local address state=down from=- unit port total=0 ready=0 running=0
    if address=$(given "$1"); then
        state=silent from=environment address=$(public "$address")
        if reachable "$(given "$1")"; then state=ready; fi
    elif is_up "$1"; then
        from=$(recall "$1" from) address=$(recall "$1" address)
        for unit in $(recall "$1" units); do
            total=$((total + 1)) port=$(port_of "$1" "$unit")
            if [ "$from" = docker ] || alive "$STATE/$1" "$unit"; then
                running=$((running + 1))
                if "${1}_ready" "$port" >/dev/null 2>&1; then ready=$((ready + 1)); fi
            fi
        done
        case $ready/$running in
            "$total/$total") state=ready ;;
            0/0) state=killed ;;
            0/*) state=silent ;;
            *) state="$ready of $total" ;;
        esac
    else
        address=-
    fi
    printf '%-12s %-9s %-12s %s\n' "$1" "$state" "$from" "$address"
}

service_kill() {
    local service=${1%[123]} unit units
    units=$(ours "$1")
    if [ "$(recall "$service" from)" = docker ]; then
        docker_kill "$service"
        return
    fi
    for unit in $units; do stop "$("${service}_kill_signal")" "$STATE/$service" "$unit"; done
}

service_start() {
    local service=${1%[123]} units
    units=$(ours "$1")
    resume "$service" "$units" || die "$1 cannot be started again"
}

# ours NAME: the units that a name of `kill` and `start` means.
ours() {
    local service=${1%[123]} units
    if ! is_up "$service"; then
        if given "$service" >/dev/null; then die "$service is not this script's: ${VARIABLE[$service]} names it"; fi
        die "$service is not up: scripts/services up $service"
    fi
    units=$(recall "$service" units)
    if [ "$1" = "$service" ]; then
        echo "$units"
    elif [[ " $units " == *" $1 "* ]]; then
        echo "$1"
    else
        die "$service has no member $1; its members: $units"
    fi
}

# reachable ADDRESS: does one of its hosts take connections? Who answers, the tests will see.
reachable() {
    local hosts host port=80
    case $1 in
        mongodb+srv://*) return 0 ;; # only a resolver knows its hosts
        mongodb://*) port=27017 ;;
        postgresql://* | postgres://*) port=5432 ;;
        amqp://*) port=5672 ;;
        amqps://*) port=5671 ;;
        https://*) port=443 ;;
    esac
    hosts=${1//http:\/\//} hosts=${hosts//https:\/\//} hosts=${hosts#mongodb://} hosts=${hosts#postgresql://}
    hosts=${hosts#postgres://} hosts=${hosts#amqp://} hosts=${hosts#amqps://} hosts=${hosts##*@}
    hosts=${hosts%%\?*}
    for host in ${hosts//,/ }; do
        host=${host%%/*}
        case $host in
            \[*\]) host=${host#[} && host=${host%]}:$port ;;
            \[*) host=${host#[} && host=${host/]:/:} ;;
            *:*) ;;
            *) host+=:$port ;;
        esac
        if answers "${host%:*}" "${host##*:}"; then return 0; fi
    done
    return 1
}
# public ADDRESS: without name, password and options.
public() { printf '%s\n' "$1" | sed -E 's#://[^/]*@#://#; s#\?.*##'; }
