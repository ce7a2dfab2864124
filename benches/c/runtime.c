/* What conmon needs to start a job: a container runtime without containers. `runtime … create … --pid-file FILE ID`
 * starts the command in JOB (words separated by 0x1e) in a session of its own and writes down its PID. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *file = NULL, *job = getenv("JOB");
	char *words[64];
	int count = 0;
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--pid-file") == 0)
			file = argv[i + 1];
	if (!file || !job)
		return 1;
	for (char *rest = strdup(job), *one; count < 63 && (one = strsep(&rest, "\x1e"));)
		words[count++] = one;
	words[count] = NULL;
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		execvp(words[0], words);
		_exit(127);
	}
	FILE *out = fopen(file, "w");
	if (pid < 0 || !out)
		return 1;
	fprintf(out, "%d", pid);
	return fclose(out) != 0;
}
