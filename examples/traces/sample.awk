# Writes the sample traces of this folder. Both are synthetic: nobody's data is in them.
#
#     awk -f sample.awk > sample.csv
#     awk -v format=twitter -f sample.awk > sample-twitter.csv
#
# What it imitates is a cache in front of a slower store. Clients ask for one of 500 keys, drawn by
# a Zipf distribution of exponent 1, at a mean rate that swings by 60 % as day and night do, twice
# in the trace, with gaps that are exponentially distributed. Twice a crowd asks for one key. Of the
# requests 83 % are retrieves, 10 % overwrite, 4 % delete, 3 % ask whether a key is there. A
# retrieve that finds nothing is followed by the store that fills the cache. Two thirds of the keys
# are there before. Sizes are log-uniform from 32 bytes to 16 KiB, and to 512 KiB for every 40th
# key; an overwrite changes them by up to a quarter.

# The generator of Park and Miller: the same numbers in every awk.
function random() {
    state = (state * 16807) % 2147483647
    return state / 2147483647
}

function letters(count,    text) {
    for (text = ""; count > 0; count--) {
        text = text substr(ALPHABET, 1 + int(random() * 62), 1)
    }
    return text
}

function chosen(    share, low, high, middle) {
    share = random() * weight[KEYS]
    low = 1
    high = KEYS
    while (low < high) {
        middle = int((low + high) / 2)
        if (weight[middle] < share) low = middle + 1; else high = middle
    }
    return low
}

function write(kind, name, bytes) {
    written++
    if (format != "twitter") {
        printf "%.6f,%s,%s,%s\n", now, kind, name, bytes
        return
    }
    kind = kind == "retrieve" || kind == "exist" ? "get" : kind == "store" ? "set" : kind
    printf "%d,%s,%d,%d,%d,%s,%d\n", now, name, length(name), bytes, 1 + int(random() * 8), kind,
        kind == "set" ? 3600 : 0
}

function retrieve(key) {
    write("retrieve", key_name[key], is_there[key] ? size[key] : 0)
    if (!is_there[key]) {
        now += 0.002 + 0.003 * random()
        is_there[key] = 1
        write("store", key_name[key], size[key])
    }
}

function request(key,    draw) {
    draw = random()
    if (draw < 0.83) {
        retrieve(key)
    } else if (draw < 0.93) {
        size[key] = int(size[key] * (0.75 + 0.5 * random()))
        is_there[key] = 1
        write("store", key_name[key], size[key])
    } else if (draw < 0.97) {
        write("delete", key_name[key], is_there[key] ? size[key] : 0)
        is_there[key] = 0
    } else {
        write("exist", key_name[key], is_there[key] ? size[key] : 0)
    }
}

function crowd(key,    guests) {
    for (guests = 30; guests > 0; guests--) {
        now += 0.0002 * random()
        retrieve(key)
    }
}

BEGIN {
    state = 20200304
    ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    KEYS = 500
    PI = 3.14159265358979
    if (format == "twitter") {
        operations = 200
        seconds = 20
    } else {
        operations = 2000
        seconds = 20
        print "# Synthetic: made by sample.awk, which says how. Nobody's data is in it."
        print "# 500 keys by Zipf, a swinging rate with two bursts, 32 B to 512 KiB; 83 % retrieves."
        print "time,operation,key,size"
    }
    split("user: session: timeline: item:thumbnail:", space, " ")
    for (key = 1; key <= KEYS; key++) {
        weight[key] = weight[key - 1] + 1 / key
        key_name[key] = space[1 + int(random() * 4)] letters(6 + int(random() * 8))
        size[key] = int(32 * exp(random() * log(key % 40 == 0 ? 16384 : 512)))
        is_there[key] = random() < 2 / 3
    }
    rate = operations / seconds
    while (written < operations) {
        if (!crowds && written > operations * 0.3 || crowds == 1 && written > operations * 0.7) {
            crowds++
            crowd(3 + crowds)
        }
        now += -log(random()) / (rate * (1 + 0.6 * sin(4 * PI * now / seconds)))
        request(chosen())
    }
}
