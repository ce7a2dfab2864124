/* PID 1 of the namespace that the benchmarks run in: runs one command, waits for everybody, ends with its status. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t child = argc > 1 ? fork() : -1;
	if (child < 0)
		return 125;
	if (child == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	for (;;) {
		int status;
		if (wait(&status) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}
