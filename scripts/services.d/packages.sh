# Servers out of packages: fetched by name with the machine's own apt, npm and pip, so that no
# registry is named here; unpacked into the cache, never installed. A directory of the cache
# carries its version in its name, and appears complete or not at all.

SUITE=trixie            # the Debian release that etcd and, for MongoDB on older systems, glibc come from
ETCD_VERSION=3.5.16-4
PROMETHEUS_VERSION=2.53.3+ds1-2
VICTORIA_METRICS_VERSION=1.112.0+ds1-2

# cached NAME FUNCTION [ARGUMENT...]: makes the cache's directory NAME, once, by FUNCTION in an empty directory.
cached() {
    local name=$1
    shift
    [ ! -d "$CACHE/$name" ] || return 0
    (
        need flock 'it is in util-linux'
        exec 8>"$CACHE/.lock"
        flock -w 600 8 || die "another run has held $CACHE/.lock for 10 minutes"
        [ ! -d "$CACHE/$name" ] || exit 0
        say "fetching $name"
        rm -rf "$CACHE"/.new.*
        new=$(mktemp -d "$CACHE/.new.XXXXXX")
        trap 'rm -rf "$new"' EXIT
        cd "$new" || exit
        "$@"
        mv -T "$new" "$CACHE/$name"
    )
}

triplet() { echo "$(uname -m)-linux-gnu"; }

# apt_state SUITE: makes APT the options of an apt whose lists are our own, and up to date. SUITE "own" means the
# machine's own sources.
apt_state() {
    local suite=$1 state mirror
    need apt-get 'this way is for Debian and its kin; start Docker, or put the server on PATH'
    state=$CACHE/apt-$suite
    mkdir -p "$state"/{lists,archives}/partial "$state/parts"
    : >"$state/status"
    APT=(-qq -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
        -o "Dir::Cache::archives=$state/archives" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
    if [ "$suite" != own ]; then
        mirror=$(debian_mirror)
        [ -n "$mirror" ] || die "no Debian mirror in this machine's apt sources; start Docker, or put the server on PATH"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$state/sources.list"
        APT+=(-o "Dir::Etc::sourcelist=$state/sources.list" -o "Dir::Etc::sourceparts=$state/parts")
    fi
    if [ -z "$(find "$state/updated" -mmin -600 2>/dev/null)" ]; then
        timeout 300 apt-get "${APT[@]}" update >&2
        touch "$state/updated"
    fi
}

# apt_unpack SUITE PACKAGE[=VERSION]...: into the current directory, through an apt state of our own.
apt_unpack() {
    local suite=$1 package
    shift
    need dpkg-deb 'it comes with apt-get'
    apt_state "$suite"
    mkdir .debs
    for package in "$@"; do
        (cd .debs && apt_download "$package")
    done
    for package in .debs/*.deb; do dpkg-deb -x "$package" .; done
    rm -r .debs
}

# The pinned version, or else what replaced it in the release, such as a security fix.
apt_download() {
    timeout 300 apt-get "${APT[@]}" download "$1" >&2 </dev/null && return
    [[ $1 == *=* ]] || die "apt has no package $1"
    say "apt no longer has $1; taking the release's own ${1%%=*}"
    timeout 300 apt-get "${APT[@]}" download "${1%%=*}" >&2 </dev/null || die "apt has no package ${1%%=*}"
}

# The machine's own Debian mirror, whether or not `apt-get update` was ever run.
debian_mirror() {
    {
        apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null || true
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
            sed 's/#.*//' | grep -E '^(URIs:|deb )' | grep -oE '(https?|mirror[^ ]*)://[^] ]+' || true
    } | awk '/\/debian\/?$/ && !n++'
}

unpack_etcd() { apt_unpack "$SUITE" "etcd-server=$ETCD_VERSION"; }
unpack_glibc() { apt_unpack "$SUITE" libc6 libstdc++6 libgcc-s1; }

# protoc_path: etcd's client cannot be built without one, nor without google/protobuf/*.proto.
protoc_path() {
    local found
    if found=$(command -v "${PROTOC:-protoc}"); then
        echo "$found"
    else
        cached protoc-own unpack_protoc
        echo "$CACHE/protoc-own/protoc"
    fi
}
unpack_protoc() {
    local libraries
    apt_unpack own protobuf-compiler libprotobuf-dev
    # The libraries have other names in each release.
    libraries=$(apt-cache "${APT[@]}" show protobuf-compiler | sed -n 's/^Depends://p' | grep -oE 'libproto(c|buf)[0-9][0-9a-z]*' | sort -u)
    [[ $libraries == *libprotobuf* ]] || libraries+=" libprotobuf${libraries#libprotoc}"
    # shellcheck disable=SC2086
    apt_unpack own $libraries
    cat >protoc <<'WRAPPER'
#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH="$here/usr/lib/$(uname -m)-linux-gnu" exec "$here/usr/bin/protoc" "$@"
WRAPPER
    chmod +x protoc
    ./protoc --version >&2
}

# program_path NAME PACKAGE-VERSION: a program of Debian's that needs nothing beside it.
program_path() {
    if ! command -v "$1"; then
        cached "$2" apt_unpack "$SUITE" "$1=${2#"$1-"}"
        echo "$CACHE/$2/usr/bin/$1"
    fi
}
