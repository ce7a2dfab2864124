# Completion of outlive for bash. outlive itself says what may come next: it knows its options and its jobs.

_outlive() {
    local -a words at answer
    local word rest=${COMP_LINE:0:COMP_POINT} i

    # bash splits words at '=' and ':', too. What no blank separates is one word; at[] says where it began.
    rest=${rest#*"${COMP_WORDS[0]}"}
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $i == 1 || $rest == [[:space:]]* || -z $rest ]]; then
            words+=('') at+=("$i")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        # The cursor may be inside of the last word.
        if ((i == COMP_CWORD)); then word=$rest; fi
        words[-1]+=${word//[\"\'\\]/}
        rest=${rest#"$word"}
    done
    local typed=${words[-1]} before=
    # Readline replaces only what follows the last of these.
    if [[ $COMP_WORDBREAKS == *=* && $typed == *=* ]]; then before=${typed%"${typed##*=}"}; fi
    if [[ $COMP_WORDBREAKS == *:* && ${typed#"$before"} == *:* ]]; then before=${typed%"${typed##*:}"}; fi

    mapfile -t answer < <(command outlive outlive:complete "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    for word in "${answer[@]:1}"; do
        printf -v word %q "${word%%$'\t'*}"
        COMPREPLY+=("${word#"$before"}")
    done
    local kind=${answer[0]-} file=${typed#"$before"}
    case $kind in
        directories | files)
            compopt -o filenames
            [[ $kind == files ]] && kind=-f || kind=-d
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$kind" -- "$file")
            ;;
        command\ *)
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset "${at[${kind#* } - 1]}"
            elif declare -F _command_offset >/dev/null; then
                _command_offset "${at[${kind#* } - 1]}"
            elif ((${kind#* } == ${#words[@]})) && [[ $typed != */* ]]; then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$file")
            else
                compopt -o filenames
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$file")
            fi
            ;;
        *) compopt -o nosort ;;
    esac
} 2>/dev/null

complete -F _outlive outlive
