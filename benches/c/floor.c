/* The least that each thing can cost: nothing here checks, explains or gives way.
 *
 *   floor exec CMD…          fork, setsid, exec; returns at once
 *   floor run DIR CMD…       what `outlive run` does: two forks, a gate, a launch record appended under a lock, the exec,
 *                            its confirmation; the second process waits and writes an exit file and the exit record.
 *                            FLOOR_SYNC=1: one flush for the launch and one for the exit
 *   floor wait PID           returns when PID has ended
 *   floor stop PID           TERM to the group of PID; returns when PID has ended
 */
#define _GNU_SOURCE
#include "shared.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char **command;
static int line[2], sync_on;
static volatile char failed;
static char path[4096], text[4096];

static const char *in(const char *dir, const char *name)
{
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void append(const char *dir, const char *record, int length, int flush)
{
	int lock = open(in(dir, "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	flock(lock, LOCK_EX);
	int ledger = open(in(dir, "ledger"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (write(ledger, record, (size_t)length) != length)
		_exit(95);
	close(lock);
	if (flush)
		fdatasync(ledger);
	close(ledger);
}

/* Shares the memory of its parent until the exec. */
static int leader(void *unused)
{
	(void)unused;
	pid_t pid = setsid();
	char gate;
	if (send(line[1], &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid || read(line[1], &gate, 1) != 1)
		_exit(94);
	execvp(command[0], command);
	failed = 1;
	_exit(127);
}

static int supervise(const char *dir)
{
	setsid();
	syscall(SYS_close_range, (unsigned)line[1] + 1, ~0u, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof text, "%s/out.%d", dir, getpid());
	int output = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	snprintf(text, sizeof text, "%s/exit.%d", dir, getpid());
	int status_file = open(text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	dup2(null, 0);
	dup2(output, 1);
	dup2(output, 2);
	if (chdir("/") < 0)
		return 93;
	static char stack[16384] __attribute__((aligned(16)));
	pid_t pid = clone(leader, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	char answer = failed;
	send(line[1], &answer, 1, MSG_NOSIGNAL);
	close(line[1]);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info, WEXITED);
	int length = snprintf(text, sizeof text, "{\"pid\":%d,\"status\":%d}\n", pid, info.si_status);
	if (write(status_file, text, (size_t)length) != length)
		return 92;
	if (sync_on)
		fdatasync(status_file);
	append(dir, text, length, 0);
	return 0;
}

static int run(const char *dir)
{
	sync_on = getenv("FLOOR_SYNC") != NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
		return 91;
	pid_t supervisor = fork();
	if (supervisor == 0) {
		close(line[0]);
		_exit(supervise(dir));
	}
	close(line[1]);
	pid_t pid;
	if (read(line[0], &pid, sizeof pid) != sizeof pid)
		return 90;
	char stat[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int proc = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(proc, stat, sizeof stat - 1);
	close(proc);
	/* As long as outlive's own. */
	int length = snprintf(text, sizeof text, "{\"kind\":\"launched\",\"stat\":\"%.*s\",\"fill\":\"%400s\"}\n",
			      (int)size - 1, stat, "");
	append(dir, text, length, sync_on);
	char answer = 'G';
	if (write(line[0], &answer, 1) != 1 || read(line[0], &answer, 1) != 1 || answer != 0)
		return 127;
	length = snprintf(text, sizeof text, "%d\n", pid);
	return write(1, text, (size_t)length) != length;
}

static void until_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 96;
	if (strcmp(argv[1], "exec") == 0) {
		if (fork() != 0)
			return 0;
		setsid();
		execvp(argv[2], argv + 2);
		return 127;
	}
	if (strcmp(argv[1], "run") == 0 && argc > 3 && argv[2][0] == '/') {
		command = argv + 3;
		return run(argv[2]);
	}
	pid_t pid = atoi(argv[2]);
	if (pid <= 1)
		return 96;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return 89;
	/* Only a leader that somebody named on the command line: its number is also its group's. */
	if (strcmp(argv[1], "stop") == 0 && getpgid(pid) == pid)
		kill(-pid, SIGTERM);
	until_ended(pidfd);
	return 0;
}
