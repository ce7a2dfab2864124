
use builtin;
use str;

set edit:completion:arg-completer[outlive] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'outlive'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'outlive'= {
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
            cand run 'Launch a command and let go of it'
            cand ls 'List jobs'
            cand ps 'List jobs'
            cand list 'List jobs'
            cand wait 'Wait for jobs to end and return their status'
            cand stop 'Stop jobs, whole process trees'
            cand reap 'Settle what ended unseen, stop what nobody owns any more'
            cand restart 'Stop jobs and run the same commands again'
            cand pause 'Pause jobs'
            cand resume 'Let paused jobs go on'
            cand logs 'Print the output of a job'
            cand show 'Print everything known about a job, and how it is known'
            cand events 'Print what happened to jobs, a JSON line each'
            cand prune 'Forget finished jobs and delete their files'
            cand doctor 'Check the state directory and what this machine can do'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'outlive;run'= {
            cand --name 'A name to call the job by: letters, digits, ''.'', ''_'', ''-'''
            cand -C 'The command''s directory [default: the current one]'
            cand --cwd 'The command''s directory [default: the current one]'
            cand -e 'Set a variable of the command''s environment'
            cand --env 'Set a variable of the command''s environment'
            cand --secret-env 'Do not write these variables to disk; restart takes them from its caller (''*'' matches anything)'
            cand -l 'Attach a label'
            cand --label 'Attach a label'
            cand -o 'Append the output to this file [default: a file of the job''s own]'
            cand --output 'Append the output to this file [default: a file of the job''s own]'
            cand --stderr 'Append stderr to this file, apart from stdout'
            cand --stdin 'A file to read, or ''inherit'' [default: nothing to read]'
            cand --owner 'The process on whose behalf the job runs'
            cand --on-owner-exit 'When the owner has ended: keep the job for good, or stop it at once [default: the next reap stops it]'
            cand -t 'Stop the job after this long; 0: never'
            cand --timeout 'Stop the job after this long; 0: never'
            cand --stop-signal 'The signal that asks the job to stop [default: TERM]'
            cand --grace 'How long a stop waits before it kills [default: 10 s]'
            cand --on-exit 'Run this shell command once the end of the job is recorded; OUTLIVE_* variables tell it how it ended'
            cand --max-output 'Keep the first 1 MiB and the newest SIZE of the output, or ''none'' [default: 1GiB; with --output: none]'
            cand --ready-log 'Return once a line of the output matches this regular expression'
            cand --ready-port 'Return once the job listens on this TCP port'
            cand --ready-file 'Return once this file appears'
            cand --ready-cmd 'Return once this shell command succeeds'
            cand --ready-timeout 'How long readiness may take; then 124 is returned and the job left alive [default: 60 s]'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -w 'Stay: copy the output through, and return the job''s status'
            cand --wait 'Stay: copy the output through, and return the job''s status'
            cand --reuse 'If a job of this name is starting, running or paused, print its id instead'
            cand --replace 'If a job of this name is alive, stop it first'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;ls'= {
            cand -l 'Only jobs with this label'
            cand --label 'Only jobs with this label'
            cand --state 'Only jobs in this state'
            cand --owner 'Only jobs that run on behalf of this process'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -a 'Ended jobs too'
            cand --all 'Ended jobs too'
            cand -q 'Ids only'
            cand --quiet 'Ids only'
            cand -w 'A live table on a terminal, until interrupted'
            cand --watch 'A live table on a terminal, until interrupted'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;ps'= {
            cand -l 'Only jobs with this label'
            cand --label 'Only jobs with this label'
            cand --state 'Only jobs in this state'
            cand --owner 'Only jobs that run on behalf of this process'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -a 'Ended jobs too'
            cand --all 'Ended jobs too'
            cand -q 'Ids only'
            cand --quiet 'Ids only'
            cand -w 'A live table on a terminal, until interrupted'
            cand --watch 'A live table on a terminal, until interrupted'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;list'= {
            cand -l 'Only jobs with this label'
            cand --label 'Only jobs with this label'
            cand --state 'Only jobs in this state'
            cand --owner 'Only jobs that run on behalf of this process'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -a 'Ended jobs too'
            cand --all 'Ended jobs too'
            cand -q 'Ids only'
            cand --quiet 'Ids only'
            cand -w 'A live table on a terminal, until interrupted'
            cand --watch 'A live table on a terminal, until interrupted'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;wait'= {
            cand -t 'Wait at most this long; 0 asks and returns'
            cand --timeout 'Wait at most this long; 0 asks and returns'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --any 'Return when the first of them ends'
            cand --group 'Wait until nothing of the job is left, not only its leader'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;stop'= {
            cand -s 'The signal to ask with [default: the job''s own, else TERM]'
            cand --signal 'The signal to ask with [default: the job''s own, else TERM]'
            cand -t 'How long to wait before killing; 0: kill at once [default: the job''s own, else 10 s]'
            cand --grace 'How long to wait before killing; 0: kill at once [default: the job''s own, else 10 s]'
            cand -l 'Every job with this label'
            cand --label 'Every job with this label'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --all 'Every job'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;reap'= {
            cand --orphans 'Jobs whose supervisor is gone: stop them, adopt them (each gets a new one), or keep them as they are'
            cand -l 'Only jobs with this label'
            cand --label 'Only jobs with this label'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --dry-run 'Say what would be done, and do nothing'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;restart'= {
            cand -t 'How long to wait before killing what is alive [default: the job''s own, else 10 s]'
            cand --grace 'How long to wait before killing what is alive [default: the job''s own, else 10 s]'
            cand --owner 'A new owner for the next run'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;pause'= {
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;resume'= {
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;logs'= {
            cand -n 'Only the last N lines'
            cand --lines 'Only the last N lines'
            cand --run 'Only what this run wrote'
            cand --since-offset 'From this byte of the file on; the offset to continue from is told on stderr'
            cand --max-bytes 'No more than this many bytes; what was dropped counts for nothing'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -f 'Go on until the job has ended'
            cand --follow 'Go on until the job has ended'
            cand -F 'The same, and when the job is restarted, go on with its next run'
            cand --follow-restarts 'The same, and when the job is restarted, go on with its next run'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;show'= {
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;events'= {
            cand --since 'Only records after this number'
            cand --reader 'Remember, under this name, what has been printed: each record once'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand -f 'Go on as things happen'
            cand --follow 'Go on as things happen'
            cand --ends 'Only the ends of runs'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;prune'= {
            cand --older-than 'Only jobs that ended at least this long ago'
            cand --keep 'Keep the newest N'
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --dry-run 'Print the ids of those that would be forgotten, and do nothing'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;doctor'= {
            cand --state-dir 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]'
            cand --color 'When to use colour'
            cand --json 'Print JSON'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'outlive;help'= {
            cand run 'Launch a command and let go of it'
            cand ls 'List jobs'
            cand wait 'Wait for jobs to end and return their status'
            cand stop 'Stop jobs, whole process trees'
            cand reap 'Settle what ended unseen, stop what nobody owns any more'
            cand restart 'Stop jobs and run the same commands again'
            cand pause 'Pause jobs'
            cand resume 'Let paused jobs go on'
            cand logs 'Print the output of a job'
            cand show 'Print everything known about a job, and how it is known'
            cand events 'Print what happened to jobs, a JSON line each'
            cand prune 'Forget finished jobs and delete their files'
            cand doctor 'Check the state directory and what this machine can do'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'outlive;help;run'= {
        }
        &'outlive;help;ls'= {
        }
        &'outlive;help;wait'= {
        }
        &'outlive;help;stop'= {
        }
        &'outlive;help;reap'= {
        }
        &'outlive;help;restart'= {
        }
        &'outlive;help;pause'= {
        }
        &'outlive;help;resume'= {
        }
        &'outlive;help;logs'= {
        }
        &'outlive;help;show'= {
        }
        &'outlive;help;events'= {
        }
        &'outlive;help;prune'= {
        }
        &'outlive;help;doctor'= {
        }
        &'outlive;help;help'= {
        }
    ]
    $completions[$command]
}
