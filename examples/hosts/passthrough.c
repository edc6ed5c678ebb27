/*
 * Stores a pair on an NVMe key-value namespace by the Linux kernel's passthrough, and retrieves it.
 *
 *     cc -o passthrough passthrough.c
 *     ./passthrough /dev/ng0n1 greeting hello
 *
 * The layout of the commands is that of the NVM Express Key Value Command Set: the key's first eight
 * bytes are in command dwords 2 and 3, the others in 14 and 15; dword 10 has a size, dword 11 the
 * length of the key.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { STORE = 0x01, RETRIEVE = 0x02, KEY_DOES_NOT_EXIST = 0x87 };

/* Carries out a command; returns its status, 0 for success, and *result as the device gave it. */
static int carry_out(int device, uint8_t opcode, const char *key, void *data, uint32_t bytes,
                     uint64_t *result)
{
    uint8_t inline_key[16] = {0};
    struct nvme_passthru_cmd64 command = {
        .opcode = opcode,
        .nsid = (uint32_t)ioctl(device, NVME_IOCTL_ID),
        .addr = (uintptr_t)data,
        .data_len = bytes,
        .cdw10 = bytes,
        .cdw11 = (uint32_t)strlen(key),
    };

    memcpy(inline_key, key, strlen(key));
    memcpy(&command.cdw2, inline_key, 4);
    memcpy(&command.cdw3, inline_key + 4, 4);
    memcpy(&command.cdw14, inline_key + 8, 4);
    memcpy(&command.cdw15, inline_key + 12, 4);

    int status = ioctl(device, NVME_IOCTL_IO64_CMD, &command);
    if (status < 0) {
        fprintf(stderr, "the command cannot be sent: %s\n", strerror(errno));
        exit(2);
    }
    *result = command.result;
    return status & 0x7ff;
}

int main(int argc, char **argv)
{
    static char value[4096];
    uint64_t result;

    if (argc != 4 || strlen(argv[2]) < 1 || strlen(argv[2]) > 16 || strlen(argv[3]) > 4096) {
        fprintf(stderr, "usage: passthrough DEVICE KEY VALUE, the key of 1 to 16 bytes\n");
        return 2;
    }
    int device = open(argv[1], O_RDWR);
    if (device < 0) {
        fprintf(stderr, "%s cannot be opened: %s\n", argv[1], strerror(errno));
        return 2;
    }

    memcpy(value, argv[3], strlen(argv[3]));
    int status = carry_out(device, STORE, argv[2], value, (uint32_t)strlen(argv[3]), &result);
    if (status != 0) {
        fprintf(stderr, "the store failed with status %03xh\n", status);
        return 1;
    }

    memset(value, 0, sizeof value);
    status = carry_out(device, RETRIEVE, argv[2], value, sizeof value, &result);
    if (status == KEY_DOES_NOT_EXIST) {
        fprintf(stderr, "the key is not there\n");
        return 1;
    }
    if (status != 0) {
        fprintf(stderr, "the retrieve failed with status %03xh\n", status);
        return 1;
    }
    /* The result of a retrieve is how long the value is, however much of it was asked for. */
    printf("%s: %.*s (%llu bytes)\n", argv[2], (int)(result < 4096 ? result : 4096), value,
           (unsigned long long)result);
    return 0;
}
