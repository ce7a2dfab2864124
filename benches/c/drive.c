/* Starts programs and takes the time, with less noise than a script: posix_spawn from a small process.
 *
 * Reads one request a line from stdin, fields separated by 0x1f, and answers each with one line of numbers; times
 * are in ns. COMMAND is: number of variables, K=V…, argv…
 *
 *   launch FIFO COMMAND          until return, until the time that the job wrote to FIFO, status
 *   time COMMAND                 until return, status
 *   wait BOARD FIFO COMMAND      starts a waiter, lets the job of BOARD go once it blocks; from the job's exit to the
 *                                waiter's return, status
 *   gone PID COMMAND             until PID has ended and the command returned, status
 *   many N WORKERS COMMAND       N times by WORKERS at once: time in all, how many failed
 *   flush FILE N                 median of N appends of a record each with fdatasync
 */
#define _GNU_SOURCE
#include "shared.h"
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { FIELDS = 512 };
extern char **environ;
static char *field[FIELDS + 1];
static int fields;
static posix_spawn_file_actions_t actions;
static posix_spawnattr_t attributes;

struct command {
	char *env[FIELDS];
	char **argv;
};

static void broken(const char *what)
{
	fprintf(stderr, "drive: %s\n", what);
	exit(1);
}

/* Given variables come first and hide inherited ones of the same name. */
static void parse(struct command *c, int at)
{
	if (at >= fields)
		broken("no command");
	int count = atoi(field[at++]), used = 0;
	for (int i = 0; i < count; i++)
		c->env[used++] = field[at++];
	for (char **e = environ; *e && used < FIELDS - 1; e++) {
		size_t name = strcspn(*e, "=") + 1;
		int hidden = 0;
		for (int i = 0; i < count; i++)
			hidden |= strncmp(*e, c->env[i], name) == 0;
		if (!hidden)
			c->env[used++] = *e;
	}
	c->env[used] = NULL;
	c->argv = field + at;
}

static pid_t start(struct command *c)
{
	pid_t pid;
	return posix_spawnp(&pid, c->argv[0], &actions, &attributes, c->argv, c->env) == 0 ? pid : -1;
}

static int finish(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int readable(int fd, int milliseconds)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, milliseconds) > 0;
}

static void launch(void)
{
	struct command c;
	parse(&c, 2);
	int fifo = open(field[1], O_RDWR | O_CLOEXEC);
	uint64_t begin = now(), stamp = 0;
	int status = finish(start(&c));
	uint64_t returned = now();
	if (!readable(fifo, 10000) || read(fifo, &stamp, sizeof stamp) != sizeof stamp)
		stamp = begin, status = status ? status : 254;
	close(fifo);
	printf("%ld %ld %d\n", (long)(returned - begin), (long)(stamp - begin), status);
}

static void take_time(void)
{
	struct command c;
	parse(&c, 1);
	uint64_t begin = now();
	int status = finish(start(&c));
	printf("%ld %d\n", (long)(now() - begin), status);
}

static void wait_for(void)
{
	struct command c;
	parse(&c, 3);
	volatile struct board *b = board(field[1]);
	int fifo = open(field[2], O_RDWR | O_CLOEXEC);
	pid_t pid = start(&c);
	for (int tries = 0; !b->ready && tries < 50000; tries++)
		usleep(200);
	usleep(20000); /* until it blocks */
	if (write(fifo, "g", 1) != 1)
		broken("cannot let the job go");
	int status = finish(pid);
	uint64_t returned = now();
	printf("%ld %d\n", b->began ? (long)(returned - b->began) : 0, b->began ? status : 254);
	close(fifo);
	munmap((void *)b, sizeof *b);
}

static void gone(void)
{
	struct command c;
	parse(&c, 2);
	int pidfd = (int)syscall(SYS_pidfd_open, atoi(field[1]), 0);
	if (pidfd < 0)
		broken("the job to be stopped is gone");
	uint64_t begin = now();
	int status = finish(start(&c));
	if (!readable(pidfd, 30000))
		status = 254;
	printf("%ld %d\n", (long)(now() - begin), status);
	close(pidfd);
}

static void many(void)
{
	struct command c;
	int count = atoi(field[1]), workers = atoi(field[2]);
	parse(&c, 3);
	volatile int *failed =
		mmap(NULL, sizeof(int) * (size_t)workers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = now();
	for (int worker = 0; worker < workers; worker++) {
		if (fork() == 0) {
			for (int i = worker; i < count; i += workers)
				failed[worker] += finish(start(&c)) != 0;
			_exit(0);
		}
	}
	for (int worker = 0; worker < workers; worker++)
		wait(NULL);
	uint64_t took = now() - begin;
	int sum = 0;
	for (int worker = 0; worker < workers; worker++)
		sum += failed[worker];
	munmap((void *)failed, sizeof(int) * (size_t)workers);
	printf("%ld %d\n", (long)took, sum);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void flush(void)
{
	int count = atoi(field[2]), fd = open(field[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	uint64_t *taken = calloc((size_t)count, sizeof *taken);
	char record[700];
	memset(record, 'x', sizeof record);
	for (int i = 0; i < count; i++) {
		if (write(fd, record, sizeof record) != sizeof record)
			broken("cannot write");
		uint64_t begin = now();
		fdatasync(fd);
		taken[i] = now() - begin;
		usleep(1000);
	}
	close(fd);
	qsort(taken, (size_t)count, sizeof *taken, by_value);
	printf("%ld 0\n", (long)taken[count / 2]);
	free(taken);
}

int main(void)
{
	static char request[1 << 18];
	sigset_t none;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(request, sizeof request, stdin)) {
		request[strcspn(request, "\n")] = 0;
		fields = 0;
		for (char *rest = request, *one; fields < FIELDS && (one = strsep(&rest, "\x1f"));)
			field[fields++] = one;
		field[fields] = NULL;
		const struct { const char *word; void (*act)(void); } acts[] = {
			{"launch", launch}, {"time", take_time}, {"wait", wait_for},
			{"gone", gone}, {"many", many}, {"flush", flush},
		};
		for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
			if (strcmp(field[0], acts[i].word) == 0)
				acts[i].act();
	}
	return 0;
}
