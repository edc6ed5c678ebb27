#!/bin/sh
# Writes a folder of files that later versions must read:
#
#     crates/cli/tests/black_box/old/make.sh target/release/kvasir PROFILE FOLDER
#
# PROFILE is a device profile with `kind = "hash"`, such as 2026-11/device.toml. FOLDER must not
# exist: a new version of a format gets a folder of its own, and old folders stay as they are. It
# needs redis-cli and gzip.
set -eu
kvasir=$(realpath "$1")
profile=$(realpath "$2")
mkdir "$3"
folder=$(realpath "$3")
work=$(mktemp -d)
server=
trap 'if [ "$server" ]; then kill -KILL "$server"; fi; rm -r "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"

# Serves $1 with further options, and sets server, port and uri.
serve() {
    rm -f ready
    "$kvasir" serve --device "$@" --clock none --nvme-tcp 127.0.0.1:0 --resp 127.0.0.1:0 \
        --json > ready &
    server=$!
    while ! grep -qs '"resp":"' ready; do
        kill -0 "$server"
        sleep 0.1
    done
    port=$(sed 's/.*"resp":"resp:..127.0.0.1:\([0-9]*\)".*/\1/' ready)
    uri=$(sed 's/.*"uri":"\(nvme-tcp[^"]*\)".*/\1/' ready)
}

stop() {
    kill -INT "$server"
    wait "$server"
    server=
}

# Executes the commands of the standard input.
redis() {
    redis-cli -p "$port" > replies
    if grep -i err replies; then exit 1; fi
}

# Stores what old.rs expects.
fill() {
    redis <<END
SET string value
SET empty ""
SET over old
SET over new
SET gone value
DEL gone
INCRBY counter 41
INCR counter
SETRANGE long 9999 x
SET expires later PXAT 4102444800000
HSET hash one 1 two 2
HDEL hash two
ZADD sorted 1 a 2.5 b
SELECT 1
SET other database
END
    printf 'a pair' > pair
    "$kvasir" kv store pair pair --target "$uri"
}

# Stores $1 values of 8 KiB, then overwrites ten times as many in a random order, so that the cleaner
# moves some.
overwrite() {
    awk -v n="$1" 'BEGIN {
        srand(1)
        for (i = 1; i <= 11 * n; i++)
            print "SETRANGE bulk:" (i <= n ? i : 1 + int(rand() * n)), "8201 x"
    }' | redis
}

"$kvasir" format drive.kv --size 67129344
serve drive.kv
fill
"$kvasir" kv export "$folder/database.archive" --target "resp://127.0.0.1:$port/0"
overwrite 1500
stop
gzip -9n < drive.kv > "$folder/stopped.kv.gz"

# A drive whose server was killed after it had acknowledged more.
serve drive.kv
echo SET late acknowledged | redis
kill -KILL "$server"
if wait "$server"; then exit 1; fi
server=
gzip -9n < drive.kv > "$folder/killed.kv.gz"

for index in hash cached-hash btree; do
    sed "s/\"hash\"/\"$index\"/" "$profile" > device.toml
    serve device.toml --state device.state
    fill
    overwrite 800
    stop
    gzip -9n < device.state > "$folder/$index.state.gz"
    rm device.state
done
cp "$profile" "$folder/device.toml"
