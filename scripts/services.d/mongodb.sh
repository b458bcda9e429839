# MongoDB: a mongod of the machine as a replica set of one, or the engine as an npm package.

mongodb_ports() { echo 1; }
mongodb_units() { echo mongodb; }
mongodb_on_path() { command -v mongod >/dev/null; }
mongodb_kill_signal() { echo KILL; }
mongodb_address() { echo "mongodb://127.0.0.1:$1/?directConnection=true"; }

mongodb_fetch() {
    need node 'Node.js 20 or newer runs the packaged MongoDB; else start Docker, or put mongod on PATH'
    need npm 'it fetches the packaged MongoDB'
    cached "$(mongodb_cache)" mongodb_unpack
    glibc_is_new || cached "glibc-$SUITE" unpack_glibc
}
mongodb_cache() { echo "mongodb-$(fingerprint "$(cat "$PARTS/mongodb/package-lock.json")")"; }
mongodb_unpack() {
    cp "$PARTS"/mongodb/package*.json .
    npm ci --silent --no-audit --no-fund --ignore-scripts >&2 || die 'npm could not fetch the packaged MongoDB'
}

# The engine needs glibc 2.38. An older system (Debian 12) gives this one process a newer one.
glibc_is_new() { printf '2.38\n%s\n' "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -V -C; }

mongodb_launch() { # DIR UNIT FROM PORT
    local run node library
    mkdir -p "$1/data"
    if [ "$3" = path ]; then
        spawn "$1" "$2" mongod --replSet flare --bind_ip 127.0.0.1 --port "$4" --dbpath "$1/data" --nounixsocket
        return
    fi
    node=$(readlink -f "$(command -v node)")
    run=("$node")
    if ! glibc_is_new; then
        library=$CACHE/glibc-$SUITE/usr/lib/$(triplet)
        run=("$(compgen -G "$library/ld-linux-*" | head -n 1)" --library-path "$library:/usr/lib/$(triplet)" "$node")
    fi
    # The engine's own socket goes where its path is short: a socket's path ends at 107 bytes.
    [ -f "$1/sockets" ] || mktemp -d /tmp/flare-mongodb.XXXXXX >"$1/sockets"
    mkdir -p "$(cat "$1/sockets")"
    TMPDIR=$(cat "$1/sockets") NODE_PATH=$CACHE/$(mongodb_cache)/node_modules \
        spawn "$1" "$2" "${run[@]}" "$PARTS/mongodb/serve.cjs" "$1/data" "$4"
}

mongodb_ready() { # PORT
    local hello
    hello=$(mongo "$1" admin '{"hello": 1}') || return 1
    case $hello in
        *'"isWritablePrimary": true'*)
            # Files of collections that are gone stay open for long otherwise, and tests make more of them than a
            # process may have.
            mongo "$1" admin '{"setParameter": 1, "wiredTigerEngineRuntimeConfig":
                "file_manager=(close_idle_time=10,close_scan_interval=5,close_handle_minimum=250)"}' >&2
            return
            ;;
        *'"isreplicaset": true'*) # a new replica set, which has to be told that it is one
            mongo "$1" admin '{"replSetInitiate": {"_id": "flare", "members": [{"_id": 0, "host": "127.0.0.1:'"$1"'"}]}}' ;;
    esac
    return 1
}
mongo() { timeout 5 python3 -I "$PARTS/mongodb/command.py" "$@"; }

mongodb_drop() { # DIR
    local sockets
    if [ -f "$1/sockets" ]; then
        sockets=$(cat "$1/sockets")
        case $sockets in /tmp/flare-mongodb.??????) rm -rf "$sockets" ;; esac
        rm -f "$1/sockets"
    fi
}
