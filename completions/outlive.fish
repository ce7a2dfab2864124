# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_outlive_global_optspecs
    string join \n state-dir= json color= h/help V/version
end

function __fish_outlive_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_outlive_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_outlive_using_subcommand
    set -l cmd (__fish_outlive_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c outlive -n "__fish_outlive_needs_command" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_needs_command" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_needs_command" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_needs_command" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_needs_command" -s V -l version -d 'Print version'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "run" -d 'Launch a command and let go of it'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "ls" -d 'List jobs'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "ps" -d 'List jobs'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "list" -d 'List jobs'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "wait" -d 'Wait for jobs to end and return their status'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "stop" -d 'Stop jobs, whole process trees'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "reap" -d 'Settle what ended unseen, stop what nobody owns any more'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "restart" -d 'Stop jobs and run the same commands again'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "pause" -d 'Pause jobs'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "resume" -d 'Let paused jobs go on'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "logs" -d 'Print the output of a job'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "show" -d 'Print everything known about a job, and how it is known'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "events" -d 'Print what happened to jobs, a JSON line each'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "prune" -d 'Forget finished jobs and delete their files'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "doctor" -d 'Check the state directory and what this machine can do'
complete -c outlive -n "__fish_outlive_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c outlive -n "__fish_outlive_using_subcommand run" -l name -d 'A name to call the job by: letters, digits, \'.\', \'_\', \'-\'' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -s C -l cwd -d 'The command\'s directory [default: the current one]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand run" -s e -l env -d 'Set a variable of the command\'s environment' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l secret-env -d 'Do not write these variables to disk; restart takes them from its caller (\'*\' matches anything)' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -s l -l label -d 'Attach a label' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -s o -l output -d 'Append the output to this file [default: a file of the job\'s own]' -r -F
complete -c outlive -n "__fish_outlive_using_subcommand run" -l stderr -d 'Append stderr to this file, apart from stdout' -r -F
complete -c outlive -n "__fish_outlive_using_subcommand run" -l stdin -d 'A file to read, or \'inherit\' [default: nothing to read]' -r -F
complete -c outlive -n "__fish_outlive_using_subcommand run" -l owner -d 'The process on whose behalf the job runs' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l on-owner-exit -d 'When the owner has ended: keep the job for good, or stop it at once [default: the next reap stops it]' -r -f -a "keep\t''
stop\t''"
complete -c outlive -n "__fish_outlive_using_subcommand run" -s t -l timeout -d 'Stop the job after this long; 0: never' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l stop-signal -d 'The signal that asks the job to stop [default: TERM]' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l grace -d 'How long a stop waits before it kills [default: 10 s]' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l on-exit -d 'Run this shell command once the end of the job is recorded; OUTLIVE_* variables tell it how it ended' -r -f -a "(__fish_complete_command)"
complete -c outlive -n "__fish_outlive_using_subcommand run" -l max-output -d 'Keep the first 1 MiB and the newest SIZE of the output, or \'none\' [default: 1GiB; with --output: none]' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l ready-log -d 'Return once a line of the output matches this regular expression' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l ready-port -d 'Return once the job listens on this TCP port' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l ready-file -d 'Return once this file appears' -r -F
complete -c outlive -n "__fish_outlive_using_subcommand run" -l ready-cmd -d 'Return once this shell command succeeds' -r -f -a "(__fish_complete_command)"
complete -c outlive -n "__fish_outlive_using_subcommand run" -l ready-timeout -d 'How long readiness may take; then 124 is returned and the job left alive [default: 60 s]' -r
complete -c outlive -n "__fish_outlive_using_subcommand run" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand run" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand run" -s w -l wait -d 'Stay: copy the output through, and return the job\'s status'
complete -c outlive -n "__fish_outlive_using_subcommand run" -l reuse -d 'If a job of this name is starting, running or paused, print its id instead'
complete -c outlive -n "__fish_outlive_using_subcommand run" -l replace -d 'If a job of this name is alive, stop it first'
complete -c outlive -n "__fish_outlive_using_subcommand run" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand run" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand ls" -s l -l label -d 'Only jobs with this label' -r
complete -c outlive -n "__fish_outlive_using_subcommand ls" -l state -d 'Only jobs in this state' -r -f -a "starting\t''
running\t''
paused\t''
lingering\t''
orphaned\t''
exited\t''
stopped\t''
failed\t''
interrupted\t''
unknown\t''"
complete -c outlive -n "__fish_outlive_using_subcommand ls" -l owner -d 'Only jobs that run on behalf of this process' -r
complete -c outlive -n "__fish_outlive_using_subcommand ls" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand ls" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand ls" -s a -l all -d 'Ended jobs too'
complete -c outlive -n "__fish_outlive_using_subcommand ls" -s q -l quiet -d 'Ids only'
complete -c outlive -n "__fish_outlive_using_subcommand ls" -s w -l watch -d 'A live table on a terminal, until interrupted'
complete -c outlive -n "__fish_outlive_using_subcommand ls" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand ls" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand ps" -s l -l label -d 'Only jobs with this label' -r
complete -c outlive -n "__fish_outlive_using_subcommand ps" -l state -d 'Only jobs in this state' -r -f -a "starting\t''
running\t''
paused\t''
lingering\t''
orphaned\t''
exited\t''
stopped\t''
failed\t''
interrupted\t''
unknown\t''"
complete -c outlive -n "__fish_outlive_using_subcommand ps" -l owner -d 'Only jobs that run on behalf of this process' -r
complete -c outlive -n "__fish_outlive_using_subcommand ps" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand ps" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand ps" -s a -l all -d 'Ended jobs too'
complete -c outlive -n "__fish_outlive_using_subcommand ps" -s q -l quiet -d 'Ids only'
complete -c outlive -n "__fish_outlive_using_subcommand ps" -s w -l watch -d 'A live table on a terminal, until interrupted'
complete -c outlive -n "__fish_outlive_using_subcommand ps" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand ps" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand list" -s l -l label -d 'Only jobs with this label' -r
complete -c outlive -n "__fish_outlive_using_subcommand list" -l state -d 'Only jobs in this state' -r -f -a "starting\t''
running\t''
paused\t''
lingering\t''
orphaned\t''
exited\t''
stopped\t''
failed\t''
interrupted\t''
unknown\t''"
complete -c outlive -n "__fish_outlive_using_subcommand list" -l owner -d 'Only jobs that run on behalf of this process' -r
complete -c outlive -n "__fish_outlive_using_subcommand list" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand list" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand list" -s a -l all -d 'Ended jobs too'
complete -c outlive -n "__fish_outlive_using_subcommand list" -s q -l quiet -d 'Ids only'
complete -c outlive -n "__fish_outlive_using_subcommand list" -s w -l watch -d 'A live table on a terminal, until interrupted'
complete -c outlive -n "__fish_outlive_using_subcommand list" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand list" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand wait" -s t -l timeout -d 'Wait at most this long; 0 asks and returns' -r
complete -c outlive -n "__fish_outlive_using_subcommand wait" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand wait" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand wait" -l any -d 'Return when the first of them ends'
complete -c outlive -n "__fish_outlive_using_subcommand wait" -l group -d 'Wait until nothing of the job is left, not only its leader'
complete -c outlive -n "__fish_outlive_using_subcommand wait" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand wait" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand stop" -s s -l signal -d 'The signal to ask with [default: the job\'s own, else TERM]' -r
complete -c outlive -n "__fish_outlive_using_subcommand stop" -s t -l grace -d 'How long to wait before killing; 0: kill at once [default: the job\'s own, else 10 s]' -r
complete -c outlive -n "__fish_outlive_using_subcommand stop" -s l -l label -d 'Every job with this label' -r
complete -c outlive -n "__fish_outlive_using_subcommand stop" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand stop" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand stop" -l all -d 'Every job'
complete -c outlive -n "__fish_outlive_using_subcommand stop" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand stop" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand reap" -l orphans -d 'Jobs whose supervisor is gone: stop them, adopt them (each gets a new one), or keep them as they are' -r -f -a "stop\t''
adopt\t''
keep\t''"
complete -c outlive -n "__fish_outlive_using_subcommand reap" -s l -l label -d 'Only jobs with this label' -r
complete -c outlive -n "__fish_outlive_using_subcommand reap" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand reap" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand reap" -l dry-run -d 'Say what would be done, and do nothing'
complete -c outlive -n "__fish_outlive_using_subcommand reap" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand reap" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand restart" -s t -l grace -d 'How long to wait before killing what is alive [default: the job\'s own, else 10 s]' -r
complete -c outlive -n "__fish_outlive_using_subcommand restart" -l owner -d 'A new owner for the next run' -r
complete -c outlive -n "__fish_outlive_using_subcommand restart" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand restart" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand restart" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand restart" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand pause" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand pause" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand pause" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand pause" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand resume" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand resume" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand resume" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand resume" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand logs" -s n -l lines -d 'Only the last N lines' -r
complete -c outlive -n "__fish_outlive_using_subcommand logs" -l run -d 'Only what this run wrote' -r
complete -c outlive -n "__fish_outlive_using_subcommand logs" -l since-offset -d 'From this byte of the file on; the offset to continue from is told on stderr' -r
complete -c outlive -n "__fish_outlive_using_subcommand logs" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand logs" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand logs" -s f -l follow -d 'Go on until the job has ended'
complete -c outlive -n "__fish_outlive_using_subcommand logs" -s F -l follow-restarts -d 'The same, and when the job is restarted, go on with its next run'
complete -c outlive -n "__fish_outlive_using_subcommand logs" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand logs" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand show" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand show" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand show" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand show" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand events" -l since -d 'Only records after this number' -r
complete -c outlive -n "__fish_outlive_using_subcommand events" -l reader -d 'Remember, under this name, what has been printed: each record once' -r
complete -c outlive -n "__fish_outlive_using_subcommand events" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand events" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand events" -s f -l follow -d 'Go on as things happen'
complete -c outlive -n "__fish_outlive_using_subcommand events" -l ends -d 'Only the ends of runs'
complete -c outlive -n "__fish_outlive_using_subcommand events" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand events" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l older-than -d 'Only jobs that ended at least this long ago' -r
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l keep -d 'Keep the newest N' -r
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l dry-run -d 'Print the ids of those that would be forgotten, and do nothing'
complete -c outlive -n "__fish_outlive_using_subcommand prune" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand prune" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand doctor" -l state-dir -d 'Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]' -r -f -a "(__fish_complete_directories)"
complete -c outlive -n "__fish_outlive_using_subcommand doctor" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c outlive -n "__fish_outlive_using_subcommand doctor" -l json -d 'Print JSON'
complete -c outlive -n "__fish_outlive_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "run" -d 'Launch a command and let go of it'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "ls" -d 'List jobs'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "wait" -d 'Wait for jobs to end and return their status'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "stop" -d 'Stop jobs, whole process trees'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "reap" -d 'Settle what ended unseen, stop what nobody owns any more'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "restart" -d 'Stop jobs and run the same commands again'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "pause" -d 'Pause jobs'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "resume" -d 'Let paused jobs go on'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "logs" -d 'Print the output of a job'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "show" -d 'Print everything known about a job, and how it is known'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "events" -d 'Print what happened to jobs, a JSON line each'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "prune" -d 'Forget finished jobs and delete their files'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "doctor" -d 'Check the state directory and what this machine can do'
complete -c outlive -n "__fish_outlive_using_subcommand help; and not __fish_seen_subcommand_from run ls wait stop reap restart pause resume logs show events prune doctor help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
