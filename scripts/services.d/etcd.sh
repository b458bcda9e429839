# etcd: the machine's own, or Debian's package. One member, or three (FLARE_TEST_ETCD_NODES).

etcd_ports() { echo $((2 * ETCD_NODES)); }
etcd_units() { if [ "$ETCD_NODES" = 1 ]; then echo etcd; else echo etcd1 etcd2 etcd3; fi; }
etcd_on_path() { command -v etcd >/dev/null; }
etcd_kill_signal() { echo KILL; }
etcd_fetch() { cached "etcd-$ETCD_VERSION" unpack_etcd; }

# The clients' ports come first, then the members' own.
etcd_address() {
    local ports=("$@") i address=""
    for ((i = 0; i < ${#ports[@]} / 2 || i == 0; i++)); do address+=,http://127.0.0.1:${ports[i]}; done
    echo "${address#,}"
}

etcd_launch() { # DIR UNIT FROM PORT...
    local dir=$1 unit=$2 from=$3 binary=etcd cluster="" units i me
    shift 3
    local ports=("$@") members=$(($# / 2))
    read -ra units <"$dir/units"
    for ((i = 0; i < members; i++)); do
        cluster+=,${units[i]}=http://127.0.0.1:${ports[members + i]}
        if [ "${units[i]}" = "$unit" ]; then me=$i; fi
    done
    [ "$from" = path ] || binary=$CACHE/etcd-$ETCD_VERSION/usr/bin/etcd
    mkdir -p "$dir/data"
    # With the default timings a lease of one second would be granted as two.
    spawn "$dir" "$unit" "$binary" --name "$unit" --data-dir "$dir/data/$unit" --log-level warn \
        --heartbeat-interval 50 --election-timeout 500 \
        --listen-client-urls "http://127.0.0.1:${ports[me]}" --advertise-client-urls "http://127.0.0.1:${ports[me]}" \
        --listen-peer-urls "http://127.0.0.1:${ports[members + me]}" \
        --initial-advertise-peer-urls "http://127.0.0.1:${ports[members + me]}" \
        --initial-cluster "${cluster#,}" --initial-cluster-state new --initial-cluster-token "flare-${ports[0]}"
}

etcd_ready() { curl -fsS -m 5 "http://127.0.0.1:$1/health" | grep -q '"health":"true"'; } # PORT
etcd_drop() { :; }
