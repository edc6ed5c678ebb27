#!/bin/sh
# Writes the files of this folder with the program KVASIR. Once written, they stay as they are: every
# later version must read them. A new version of a format gets a folder of its own.
#
#     crates/cli/tests/black_box/old/make.sh target/release/kvasir
#
# It needs redis-cli and gzip.
set -eu
kvasir=$(realpath "$1")
folder=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
server=
trap 'if [ "$server" ]; then kill -KILL "$server"; fi; rm -r "$work"' EXIT
cd "$work"

# Serves $1 with further options, and sets server, port and uri.
serve() {
    rm -f ready
    "$kvasir" serve --device "$@" --clock none --nvme-tcp 127.0.0.1:0 --resp 127.0.0.1:0 \
        --json > ready &
    server=$!
    while ! grep -qs '"resp":"' ready; do sleep 0.1; done
    port=$(sed 's/.*"resp":"resp:..127.0.0.1:\([0-9]*\)".*/\1/' ready)
    uri=$(sed 's/.*"uri":"\(nvme-tcp[^"]*\)".*/\1/' ready)
}

stop() {
    kill -INT "$server"
    wait "$server"
    server=
}

# Stores what old.rs expects.
fill() {
    redis-cli -p "$port" > replies <<END
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
    if grep -i err replies; then exit 1; fi
    printf 'a pair' > pair
    "$kvasir" kv store pair pair --target "$uri"
}

"$kvasir" format drive.kv --size 67129344
serve drive.kv
fill
"$kvasir" kv export "$folder/database.archive" --target "resp://127.0.0.1:$port/0"
stop
gzip -9n < drive.kv > "$folder/stopped.kv.gz"

# A drive whose server was killed after it had acknowledged more.
serve drive.kv
redis-cli -p "$port" SET late acknowledged
kill -KILL "$server"
wait "$server" || true
server=
gzip -9n < drive.kv > "$folder/killed.kv.gz"

for index in hash cached-hash btree; do
    sed "s/\"hash\"/\"$index\"/" "$folder/device.toml" > device.toml
    serve device.toml --state device.state
    fill
    stop
    gzip -9n < device.state > "$folder/$index.state.gz"
    rm device.state
done
