# A browser for tests: Debian's Chromium unpacked, with the libraries that this machine lacks, and what
# drives it (playwright-core, which fetches no browser of its own) and judges pages (axe-core) from npm.

# chromium_path: a program that runs a Chromium; the machine's own if it has one.
chromium_path() {
    local name
    if ! command -v chromium; then
        name=chromium-$(. /etc/os-release && echo "${VERSION_CODENAME:-own}")
        cached "$name" chromium_unpack
        echo "$CACHE/$name/chromium"
    fi
}

chromium_unpack() {
    local missing libraries
    # What apt would install here, told without installing anything: this machine has the rest.
    apt_state own
    missing=$(timeout 300 apt-get -qq -s -o Debug::NoLocking=1 -o "Dir::State::lists=$CACHE/apt-own/lists" \
        -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" install --no-install-recommends chromium 2>/dev/null |
        awk '$1 == "Inst" { print $2 }') || true
    # shellcheck disable=SC2086
    apt_unpack own ${missing:-chromium chromium-common}
    libraries=usr/lib/$(triplet)
    cat >chromium <<WRAPPER
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
LD_LIBRARY_PATH="\$here/$libraries:\$here/$libraries/pulseaudio" exec "\$here/usr/lib/chromium/chromium" "\$@"
WRAPPER
    chmod +x chromium
    missing=$(LD_LIBRARY_PATH="$libraries:$libraries/pulseaudio" ldd usr/lib/chromium/chromium | grep 'not found' || true)
    [ -z "$missing" ] || die "the unpacked Chromium lacks$missing"
    ./chromium --version >&2 </dev/null
}

# browser_path: a program that runs a Node.js script which may require playwright-core and axe-core, and finds
# the Chromium to drive in FLARE_CHROMIUM.
browser_path() {
    local name chromium
    need node 'Node.js 20 or newer drives the browser'
    need npm 'it fetches what drives the browser'
    chromium=$(chromium_path)
    name=browser-$(fingerprint "$chromium $(cat "$PARTS/browser/package-lock.json")")
    cached "$name" browser_unpack "$chromium" "$CACHE/$name/node_modules"
    echo "$CACHE/$name/browser"
}
browser_unpack() { # CHROMIUM MODULES
    cp "$PARTS"/browser/package*.json .
    npm ci --silent --no-audit --no-fund --ignore-scripts >&2 || die 'npm could not fetch playwright-core and axe-core'
    cat >browser <<WRAPPER
#!/bin/sh
FLARE_CHROMIUM='$1' NODE_PATH='$2' exec node "\$@"
WRAPPER
    chmod +x browser
}
