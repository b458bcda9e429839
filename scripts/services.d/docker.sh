# The same services as containers, described by compose.yaml. Each state directory is a project of its own.

docker_runs() {
    command -v docker >/dev/null && timeout 10 docker compose version >/dev/null 2>&1 && timeout 10 docker info >/dev/null 2>&1
}

compose() {
    FLARE_MONGODB_PORT=$(docker_port mongodb) FLARE_SQS_PORT=$(docker_port sqs) FLARE_ETCD_PORT=$(docker_port etcd) \
        FLARE_POSTGRESQL_PORT=$(docker_port postgresql) FLARE_POSTGRESQL15_PORT=$(docker_port postgresql15) \
        FLARE_PGBOUNCER_PORT=$(docker_port pgbouncer) FLARE_RABBITMQ_PORT=$(docker_port rabbitmq) \
        timeout 900 docker compose --project-name "flare-$(fingerprint "$STATE")" --file "$ROOT/compose.yaml" "$@" >&2 9>&-
}
docker_port() { recall "$1" ports | cut -d' ' -f1; }

docker_up() { # SERVICE: a new container, or the one that was killed, on its data and port
    if [ "$1" = etcd ] && [ "$ETCD_NODES" != 1 ]; then die 'three members need an etcd on PATH or from packages'; fi
    touch "$STATE/.docker"
    if ! compose up --detach --no-recreate --wait --wait-timeout "$TIMEOUT" "$1"; then
        say "$1 is not ready; the end of its log:"
        compose logs --no-color --tail 20 "$1" || true
        return 1
    fi
}
docker_kill() {
    if [ "$("${1}_kill_signal")" = KILL ]; then compose kill "$1"; else compose stop --timeout 5 "$1"; fi
}
docker_down() { compose rm --force --stop --volumes "$1"; }

# The project's network goes with its last container.
docker_down_if_last() {
    [ -f "$STATE/.docker" ] || return 0
    if ! grep -qsx docker "$STATE"/*/from; then
        compose down --volumes
        rm -f "$STATE/.docker"
    fi
}
