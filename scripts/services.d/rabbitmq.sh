# RabbitMQ: Debian's package with the Erlang it needs, unpacked. The machine's own is never taken: its node
# name, its data and its `epmd` are the machine's, not ours.
#
# Three ports: for clients, for its own nodes (there are no others), and for the `epmd` that Erlang wants. All
# of them on loopback.

RABBITMQ_SUITE=bookworm       # the Debian release with RabbitMQ 3.10 and Erlang 25
RABBITMQ_PACKAGES=(rabbitmq-server erlang-base erlang-asn1 erlang-crypto erlang-eldap erlang-ftp erlang-inets erlang-mnesia
    erlang-os-mon erlang-parsetools erlang-public-key erlang-runtime-tools erlang-snmp erlang-ssl erlang-syntax-tools
    erlang-tftp erlang-tools erlang-xmerl)

rabbitmq_ports() { echo 3; }
rabbitmq_units() { echo rabbitmq; }
rabbitmq_on_path() { false; }
rabbitmq_kill_signal() { echo KILL; }
rabbitmq_address() { echo "amqp://flare:flare@127.0.0.1:$1/%2f"; }

rabbitmq_fetch() { cached "$(rabbitmq_cache)" rabbitmq_unpack; }
rabbitmq_cache() { echo "rabbitmq-$RABBITMQ_SUITE"; }
rabbitmq_unpack() {
    apt_unpack "$RABBITMQ_SUITE" "${RABBITMQ_PACKAGES[@]}"
    # Both take the place they were built for as theirs.
    sed -i "s#ROOTDIR=/usr/lib/erlang#ROOTDIR=$CACHE/$(rabbitmq_cache)/usr/lib/erlang#" \
        usr/lib/erlang/bin/erl usr/lib/erlang/erts-*/bin/erl
}

rabbitmq_launch() { # DIR UNIT FROM PORT NODES_PORT EPMD_PORT
    local dir=$1 unit=$2 erlang server
    erlang=$CACHE/$(rabbitmq_cache)/usr/lib/erlang
    server=$(echo "$CACHE/$(rabbitmq_cache)"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server)
    need setpriv 'it is in util-linux'
    mkdir -p "$dir/data/home"
    cat >"$dir/data/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$4
default_user = flare
default_pass = flare
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 1GB
log.console = true
log.console.level = warning
log.file = false
CONF
    # What the machine says of its own RabbitMQ is not for ours.
    : >"$dir/data/rabbitmq-env.conf"
    echo '[].' >"$dir/data/advanced.config"
    # epmd ends with the server; one that Erlang starts by itself would stay for ever.
    # With RUNNING_UNDER_SYSTEMD, the script becomes the server instead of waiting for it.
    spawn "$dir" "$unit" env -u NOTIFY_SOCKET HOME="$dir/data/home" PATH="$erlang/bin:$PATH" LANG=C.UTF-8 \
        ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$6" ERL_CRASH_DUMP="$dir/data/erl_crash.dump" RUNNING_UNDER_SYSTEMD=true \
        RABBITMQ_NODENAME="flare-$4@localhost" RABBITMQ_DIST_PORT="$5" \
        RABBITMQ_CONF_ENV_FILE="$dir/data/rabbitmq-env.conf" RABBITMQ_CONFIG_FILE="$dir/data/rabbitmq.conf" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$dir/data/advanced.config" RABBITMQ_ENABLED_PLUGINS_FILE="$dir/data/plugins" \
        RABBITMQ_MNESIA_BASE="$dir/data/mnesia" RABBITMQ_LOG_BASE="$dir/data/log" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +S 2:2' \
        sh -c 'setpriv --pdeathsig KILL epmd & exec "$0"' "$server"
}

# Says the protocol's first words, and is asked who it is in turn.
rabbitmq_ready() { # PORT
    # shellcheck disable=SC2016
    timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "AMQP\0\0\11\1" >&3 && head -c 1 <&3 | grep -q .' - "$1"
}
rabbitmq_drop() { :; }
