
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'outlive' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'outlive'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'outlive' {
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Launch a command and let go of it')
            [CompletionResult]::new('ls', 'ls', [CompletionResultType]::ParameterValue, 'List jobs')
            [CompletionResult]::new('ps', 'ps', [CompletionResultType]::ParameterValue, 'List jobs')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List jobs')
            [CompletionResult]::new('wait', 'wait', [CompletionResultType]::ParameterValue, 'Wait for jobs to end and return their status')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop jobs, whole process trees')
            [CompletionResult]::new('reap', 'reap', [CompletionResultType]::ParameterValue, 'Settle what ended unseen, stop what nobody owns any more')
            [CompletionResult]::new('restart', 'restart', [CompletionResultType]::ParameterValue, 'Stop jobs and run the same commands again')
            [CompletionResult]::new('pause', 'pause', [CompletionResultType]::ParameterValue, 'Pause jobs')
            [CompletionResult]::new('resume', 'resume', [CompletionResultType]::ParameterValue, 'Let paused jobs go on')
            [CompletionResult]::new('logs', 'logs', [CompletionResultType]::ParameterValue, 'Print the output of a job')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print everything known about a job, and how it is known')
            [CompletionResult]::new('events', 'events', [CompletionResultType]::ParameterValue, 'Print what happened to jobs, a JSON line each')
            [CompletionResult]::new('prune', 'prune', [CompletionResultType]::ParameterValue, 'Forget finished jobs and delete their files')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check the state directory and what this machine can do')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outlive;run' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'A name to call the job by: letters, digits, ''.'', ''_'', ''-''')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'The command''s directory [default: the current one]')
            [CompletionResult]::new('--cwd', '--cwd', [CompletionResultType]::ParameterName, 'The command''s directory [default: the current one]')
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Set a variable of the command''s environment')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Set a variable of the command''s environment')
            [CompletionResult]::new('--secret-env', '--secret-env', [CompletionResultType]::ParameterName, 'Do not write these variables to disk; restart takes them from its caller (''*'' matches anything)')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Attach a label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Attach a label')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Append the output to this file [default: a file of the job''s own]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Append the output to this file [default: a file of the job''s own]')
            [CompletionResult]::new('--stderr', '--stderr', [CompletionResultType]::ParameterName, 'Append stderr to this file, apart from stdout')
            [CompletionResult]::new('--stdin', '--stdin', [CompletionResultType]::ParameterName, 'A file to read, or ''inherit'' [default: nothing to read]')
            [CompletionResult]::new('--owner', '--owner', [CompletionResultType]::ParameterName, 'The process on whose behalf the job runs')
            [CompletionResult]::new('--on-owner-exit', '--on-owner-exit', [CompletionResultType]::ParameterName, 'When the owner has ended: keep the job for good, or stop it at once [default: the next reap stops it]')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Stop the job after this long; 0: never')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Stop the job after this long; 0: never')
            [CompletionResult]::new('--stop-signal', '--stop-signal', [CompletionResultType]::ParameterName, 'The signal that asks the job to stop [default: TERM]')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'How long a stop waits before it kills [default: 10 s]')
            [CompletionResult]::new('--on-exit', '--on-exit', [CompletionResultType]::ParameterName, 'Run this shell command once the end of the job is recorded; OUTLIVE_* variables tell it how it ended')
            [CompletionResult]::new('--max-output', '--max-output', [CompletionResultType]::ParameterName, 'Keep the first 1 MiB and the newest SIZE of the output, or ''none'' [default: 1GiB; with --output: none]')
            [CompletionResult]::new('--ready-log', '--ready-log', [CompletionResultType]::ParameterName, 'Return once a line of the output matches this regular expression')
            [CompletionResult]::new('--ready-port', '--ready-port', [CompletionResultType]::ParameterName, 'Return once the job listens on this TCP port')
            [CompletionResult]::new('--ready-file', '--ready-file', [CompletionResultType]::ParameterName, 'Return once this file appears')
            [CompletionResult]::new('--ready-cmd', '--ready-cmd', [CompletionResultType]::ParameterName, 'Return once this shell command succeeds')
            [CompletionResult]::new('--ready-timeout', '--ready-timeout', [CompletionResultType]::ParameterName, 'How long readiness may take; then 124 is returned and the job left alive [default: 60 s]')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'Stay: copy the output through, and return the job''s status')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'Stay: copy the output through, and return the job''s status')
            [CompletionResult]::new('--reuse', '--reuse', [CompletionResultType]::ParameterName, 'If a job of this name is starting, running or paused, print its id instead')
            [CompletionResult]::new('--replace', '--replace', [CompletionResultType]::ParameterName, 'If a job of this name is alive, stop it first')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;ls' {
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--state', '--state', [CompletionResultType]::ParameterName, 'Only jobs in this state')
            [CompletionResult]::new('--owner', '--owner', [CompletionResultType]::ParameterName, 'Only jobs that run on behalf of this process')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--watch', '--watch', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;ps' {
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--state', '--state', [CompletionResultType]::ParameterName, 'Only jobs in this state')
            [CompletionResult]::new('--owner', '--owner', [CompletionResultType]::ParameterName, 'Only jobs that run on behalf of this process')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--watch', '--watch', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;list' {
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--state', '--state', [CompletionResultType]::ParameterName, 'Only jobs in this state')
            [CompletionResult]::new('--owner', '--owner', [CompletionResultType]::ParameterName, 'Only jobs that run on behalf of this process')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Ended jobs too')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Ids only')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--watch', '--watch', [CompletionResultType]::ParameterName, 'A live table on a terminal, until interrupted')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;wait' {
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Wait at most this long; 0 asks and returns')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Wait at most this long; 0 asks and returns')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--any', '--any', [CompletionResultType]::ParameterName, 'Return when the first of them ends')
            [CompletionResult]::new('--group', '--group', [CompletionResultType]::ParameterName, 'Wait until nothing of the job is left, not only its leader')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;stop' {
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'The signal to ask with [default: the job''s own, else TERM]')
            [CompletionResult]::new('--signal', '--signal', [CompletionResultType]::ParameterName, 'The signal to ask with [default: the job''s own, else TERM]')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'How long to wait before killing; 0: kill at once [default: the job''s own, else 10 s]')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'How long to wait before killing; 0: kill at once [default: the job''s own, else 10 s]')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Every job with this label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Every job with this label')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Every job')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;reap' {
            [CompletionResult]::new('--orphans', '--orphans', [CompletionResultType]::ParameterName, 'Jobs whose supervisor is gone: stop them, adopt them (each gets a new one), or keep them as they are')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Only jobs with this label')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Say what would be done, and do nothing')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;restart' {
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'How long to wait before killing what is alive [default: the job''s own, else 10 s]')
            [CompletionResult]::new('--grace', '--grace', [CompletionResultType]::ParameterName, 'How long to wait before killing what is alive [default: the job''s own, else 10 s]')
            [CompletionResult]::new('--owner', '--owner', [CompletionResultType]::ParameterName, 'A new owner for the next run')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;pause' {
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;resume' {
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;logs' {
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Only the last N lines')
            [CompletionResult]::new('--lines', '--lines', [CompletionResultType]::ParameterName, 'Only the last N lines')
            [CompletionResult]::new('--run', '--run', [CompletionResultType]::ParameterName, 'Only what this run wrote')
            [CompletionResult]::new('--since-offset', '--since-offset', [CompletionResultType]::ParameterName, 'From this byte of the file on; the offset to continue from is told on stderr')
            [CompletionResult]::new('--max-bytes', '--max-bytes', [CompletionResultType]::ParameterName, 'No more than this many bytes; what was dropped counts for nothing')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Go on until the job has ended')
            [CompletionResult]::new('--follow', '--follow', [CompletionResultType]::ParameterName, 'Go on until the job has ended')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'The same, and when the job is restarted, go on with its next run')
            [CompletionResult]::new('--follow-restarts', '--follow-restarts', [CompletionResultType]::ParameterName, 'The same, and when the job is restarted, go on with its next run')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;show' {
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;events' {
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Only records after this number')
            [CompletionResult]::new('--reader', '--reader', [CompletionResultType]::ParameterName, 'Remember, under this name, what has been printed: each record once')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Go on as things happen')
            [CompletionResult]::new('--follow', '--follow', [CompletionResultType]::ParameterName, 'Go on as things happen')
            [CompletionResult]::new('--ends', '--ends', [CompletionResultType]::ParameterName, 'Only the ends of runs')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;prune' {
            [CompletionResult]::new('--older-than', '--older-than', [CompletionResultType]::ParameterName, 'Only jobs that ended at least this long ago')
            [CompletionResult]::new('--keep', '--keep', [CompletionResultType]::ParameterName, 'Keep the newest N')
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Print the ids of those that would be forgotten, and do nothing')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;doctor' {
            [CompletionResult]::new('--state-dir', '--state-dir', [CompletionResultType]::ParameterName, 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'outlive;help' {
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Launch a command and let go of it')
            [CompletionResult]::new('ls', 'ls', [CompletionResultType]::ParameterValue, 'List jobs')
            [CompletionResult]::new('wait', 'wait', [CompletionResultType]::ParameterValue, 'Wait for jobs to end and return their status')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop jobs, whole process trees')
            [CompletionResult]::new('reap', 'reap', [CompletionResultType]::ParameterValue, 'Settle what ended unseen, stop what nobody owns any more')
            [CompletionResult]::new('restart', 'restart', [CompletionResultType]::ParameterValue, 'Stop jobs and run the same commands again')
            [CompletionResult]::new('pause', 'pause', [CompletionResultType]::ParameterValue, 'Pause jobs')
            [CompletionResult]::new('resume', 'resume', [CompletionResultType]::ParameterValue, 'Let paused jobs go on')
            [CompletionResult]::new('logs', 'logs', [CompletionResultType]::ParameterValue, 'Print the output of a job')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print everything known about a job, and how it is known')
            [CompletionResult]::new('events', 'events', [CompletionResultType]::ParameterValue, 'Print what happened to jobs, a JSON line each')
            [CompletionResult]::new('prune', 'prune', [CompletionResultType]::ParameterValue, 'Forget finished jobs and delete their files')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Check the state directory and what this machine can do')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'outlive;help;run' {
            break
        }
        'outlive;help;ls' {
            break
        }
        'outlive;help;wait' {
            break
        }
        'outlive;help;stop' {
            break
        }
        'outlive;help;reap' {
            break
        }
        'outlive;help;restart' {
            break
        }
        'outlive;help;pause' {
            break
        }
        'outlive;help;resume' {
            break
        }
        'outlive;help;logs' {
            break
        }
        'outlive;help;show' {
            break
        }
        'outlive;help;events' {
            break
        }
        'outlive;help;prune' {
            break
        }
        'outlive;help;doctor' {
            break
        }
        'outlive;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
