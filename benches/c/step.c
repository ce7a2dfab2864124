/* Which instructions of a program are executed, by it and by what it forks: each address once, in the order of the first
 * time, one a line on descriptor 3. Single steps, see PTRACE_SINGLESTEP in ptrace(2); whoever executes another program is
 * let go.
 *
 *   step PROGRAM ARG… 3>FILE
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HIGHEST = 1 << 24 };
static unsigned char seen[HIGHEST];

int main(int argc, char **argv)
{
	if (argc < 2)
		return 96;
	FILE *out = fdopen(3, "w");
	if (!out)
		return 95;
	pid_t program = fork();
	if (program == 0) {
		close(3);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	int status, result = 94;
	if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status))
		return 93;
	long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	ptrace(PTRACE_SETOPTIONS, program, 0, options);
	ptrace(PTRACE_SINGLESTEP, program, 0, 0);
	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0)
			break;
		if (!WIFSTOPPED(status)) {
			if (pid == program)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_EXEC) {
			ptrace(PTRACE_DETACH, pid, 0, 0);
			continue;
		}
		struct user_regs_struct registers;
		if (ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0 && registers.rip < HIGHEST && !seen[registers.rip]) {
			seen[registers.rip] = 1;
			fprintf(out, "%llx\n", registers.rip);
		}
		int signal = WSTOPSIG(status);
		ptrace(PTRACE_SINGLESTEP, pid, 0, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
	}
	return fclose(out) ? 92 : result;
}
