/* The jobs of the benchmarks.
 *
 *   job nop                      ends at once
 *   job stamp FIFO               writes CLOCK_MONOTONIC, taken in its first instructions, to FIFO
 *   job pause [BOARD]            sleeps until a signal ends it
 *   job hold BOARD FIFO CODE     blocks until FIFO has a byte, notes the time and exits
 *   job lines|blocks BYTES BOARD writes BYTES to stdout, 64 bytes or 64 KiB a write
 */
#define _GNU_SOURCE
#include "shared.h"
#include <string.h>

static void announce(volatile struct board *b)
{
	b->pid = (uint64_t)getpid();
	b->ready = 1;
}

static int produce(const char *kind, uint64_t bytes, volatile struct board *b)
{
	static char buffer[65536];
	size_t step = strcmp(kind, "lines") == 0 ? 64 : sizeof buffer;
	memset(buffer, 'x', sizeof buffer);
	for (size_t at = 63; at < sizeof buffer; at += 64)
		buffer[at] = '\n';
	announce(b);
	b->began = now();
	for (uint64_t left = bytes; left > 0;) {
		ssize_t n = write(1, buffer, left < step ? left : step);
		if (n < 0) {
			perror("write");
			return 98;
		}
		left -= (uint64_t)n;
	}
	b->ended = now();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t first = now();
	const char *kind = argc > 1 ? argv[1] : "";
	if (strcmp(kind, "nop") == 0)
		return 0;
	if (strcmp(kind, "stamp") == 0 && argc == 3) {
		int fd = open(argv[2], O_WRONLY);
		return fd < 0 || write(fd, &first, sizeof first) != sizeof first;
	}
	if (strcmp(kind, "pause") == 0) {
		if (argc == 3)
			announce(board(argv[2]));
		pause();
		return 0;
	}
	if (strcmp(kind, "hold") == 0 && argc == 5) {
		volatile struct board *b = board(argv[2]);
		int fd = open(argv[3], O_RDWR), code = atoi(argv[4]);
		char byte;
		announce(b);
		if (fd < 0 || read(fd, &byte, 1) != 1)
			return 97;
		b->began = now();
		_exit(code);
	}
	if ((strcmp(kind, "lines") == 0 || strcmp(kind, "blocks") == 0) && argc == 4)
		return produce(kind, strtoull(argv[2], NULL, 10), board(argv[3]));
	return 96;
}
