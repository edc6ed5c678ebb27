#!/bin/sh
# The first process of a guest. It runs the scripts that come over the second serial line: each ends
# with a line `%`, and so does what it prints, with its exit status after the `%`.
export PATH=/bin
# With this the shell finds the commands of BusyBox.
busybox mount -t proc proc /proc
mount -t devtmpfs devices /dev
mount -t sysfs sys /sys
for module in /modules/*; do insmod "$module"; done
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
stty -F /dev/ttyS1 raw -echo
exec < /dev/ttyS1 > /dev/ttyS1
echo '% 0'
while IFS= read -r line; do
    if [ "$line" = % ]; then
        sh /tmp/script > /tmp/output 2>&1 < /dev/null
        status=$?
        cat /tmp/output
        echo "% $status"
        : > /tmp/script
    else
        printf '%s\n' "$line" >> /tmp/script
    fi
done
