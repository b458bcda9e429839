# SQS, and Kinesis beside it: ministack, an emulator, as Python packages. It holds everything in memory and writes it down
# when it is asked to end, so `kill` asks: for a client it looks like a crash of the connection, and
# like the real SQS the queues are still there afterwards.

sqs_ports() { echo 1; }
sqs_units() { echo sqs; }
sqs_on_path() { false; }
sqs_address() { echo "http://127.0.0.1:$1"; }
sqs_kill_signal() { echo TERM; }

sqs_fetch() {
    need python3 'Python 3.10 or newer runs the SQS emulator; else start Docker'
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die 'the SQS emulator needs Python 3.10 or newer'
    cached "$(sqs_cache)" sqs_unpack
}
# Some of the wheels are for one Python only.
sqs_cache() {
    echo "sqs-$(fingerprint "$(cat "$PARTS/sqs/requirements.txt")")-$(python3 -c 'import sys; print(sys.implementation.cache_tag)')"
}
sqs_unpack() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
        --only-binary=:all: --target . --requirement "$PARTS/sqs/requirements.txt" >&2 ||
        die 'pip could not fetch the SQS emulator (is python3-pip there?)'
}

sqs_launch() { # DIR UNIT FROM PORT
    mkdir -p "$1/data"
    PYTHONPATH=$CACHE/$(sqs_cache) PERSIST_STATE=1 STATE_DIR=$1/data SERVICES=sqs,kinesis LOG_LEVEL=WARNING \
        MINISTACK_HOST=127.0.0.1 GATEWAY_PORT=$4 \
        spawn "$1" "$2" "$(python3 -c 'import sys; print(sys.executable)')" -m hypercorn --workers 0 --graceful-timeout 0 \
        --bind "127.0.0.1:$4" ministack.app:app
}

sqs_ready() { sqs "$1" ListQueues '{}'; } # PORT
sqs() { # PORT ACTION BODY
    curl -fsS -m 5 "http://127.0.0.1:$1/" -H 'Content-Type: application/x-amz-json-1.0' -H "X-Amz-Target: AmazonSQS.$2" \
        -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0' \
        -d "$3"
}
sqs_drop() { :; }
