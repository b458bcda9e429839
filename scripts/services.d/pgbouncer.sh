# PgBouncer in front of the newest PostgreSQL, handing out connections per transaction: the machine's own, or
# Debian's package. It refuses to run as root, as PostgreSQL does, and is then nobody, too.

pgbouncer_ports() { echo 1; }
pgbouncer_units() { echo pgbouncer; }
pgbouncer_on_path() { command -v pgbouncer >/dev/null; }
pgbouncer_kill_signal() { echo KILL; }
pgbouncer_address() { postgresql_address "$@"; }
pgbouncer_fetch() { cached "pgbouncer-$PG_SUITE" pgbouncer_unpack; }
# With the libraries that not every machine has.
pgbouncer_unpack() { apt_unpack "$PG_SUITE" pgbouncer libevent-2.1-7 libc-ares2 libpam0g libsystemd0 libssl3; }

pgbouncer_launch() { # DIR UNIT FROM PORT
    local home program=pgbouncer libraries='' server as=()
    server=$(service_env postgresql | sed -E "s#^[^=]*='[^@]*@([^/?]*).*#\1#")
    [ -n "$server" ] || die 'pgbouncer stands before postgresql, which is not up'
    [ -f "$1/home" ] || mktemp -d /tmp/flare-pgbouncer.XXXXXX >"$1/home"
    home=$(cat "$1/home")
    if [ "$3" = packages ]; then
        # What is below a home may be nobody's to read.
        [ -d "$home/server" ] || cp -r "$CACHE/pgbouncer-$PG_SUITE" "$home/server"
        program=$home/server/usr/sbin/pgbouncer libraries=$home/server/usr/lib/$(triplet):$home/server/lib/$(triplet)
    fi
    echo '"flare" ""' >"$home/users"
    cat >"$home/pgbouncer.ini" <<INI
[databases]
* = host=${server%:*} port=${server##*:}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $4
unix_socket_dir =
auth_type = trust
auth_file = $home/users
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 40
INI
    if [ "$(id -u)" = 0 ]; then
        need setpriv 'it is in util-linux'
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        chmod -R go+rX "$home"
    fi
    LD_LIBRARY_PATH=$libraries spawn "$1" "$2" "${as[@]}" "$program" "$home/pgbouncer.ini"
}

pgbouncer_ready() { [ "$(pg "$1" 'SELECT 7')" = 7 ]; } # PORT

pgbouncer_drop() { # DIR
    local home
    if [ -f "$1/home" ]; then
        home=$(cat "$1/home")
        case $home in /tmp/flare-pgbouncer.??????) rm -rf "$home" ;; esac
        rm -f "$1/home"
    fi
}
