# Completion of outlive for fish. outlive itself says what may come next: it knows its options and its jobs.

function __outlive_complete
    command -q outlive; or return
    set -l typed (commandline -ct)
    set -l words (commandline -opc) $typed
    set -l answer (command outlive outlive:complete $words[2..-1] 2>/dev/null)
    test (count $answer) -gt 0; or return
    printf '%s\n' $answer[2..-1]
    set -l before (string match -r -- '^--[^=]+=' $typed)
    switch $answer[1]
        case 'command *'
            # What stands before that command does not matter to its own completion.
            set -l line
            for word in $words[(math (string split ' ' $answer[1])[2] + 1)..-2]
                set -a line (string escape -- $word)
            end
            complete -C "$line $typed"
        case files
            __fish_complete_path (string replace -- "$before" '' $typed) | string replace -r '^' -- "$before"
        case directories
            __fish_complete_directories (string replace -- "$before" '' $typed) '' | string replace -r '^' -- "$before"
    end
end

complete -c outlive -e
complete -c outlive -f -k -a '(__outlive_complete)'
