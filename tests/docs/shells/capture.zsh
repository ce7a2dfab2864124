# capture.zsh COMPLETIONS LINE...: what zsh offers at the end of each LINE: a candidate, a tab and its description a
# line, and a line `end`. An interactive zsh in a terminal of its own completes the lines, with a compadd that tells
# what it is given.
zmodload zsh/zpty

if [[ $1 != inside ]]; then
    export COMPLETIONS=$1
    shift
    zpty z zsh -f -i
    zpty -w z "source ${(q)0} inside"
    zpty -r -m z said '*>> ready*' || exit 1
    for line in "$@"; do
        zpty -w -n z "$line"$'\t'
        while zpty -r z said; do
            said=${said%$'\r\n'}
            if [[ $said == *'>> '* ]]; then print -r -- "${said#*>> }"; fi
            if [[ $said == *'>> end'* ]]; then break; fi
        done
        zpty -w -n z $'\C-u'
    done
    exit 0
fi

autoload -Uz compinit
compinit -u -D
source $COMPLETIONS/_outlive
bindkey '^I' telling
zstyle ':completion:*' insert-tab false

compadd() {
    # Asked for an array, not to offer anything.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits told
    local at=$@[(I)-d]
    if ((at)); then told=("${(@P)@[at + 1]}"); fi
    builtin compadd -A hits -D told "$@"
    for ((at = 1; at <= $#hits; at++)); do
        print -r -- $'\r'">> $IPREFIX$hits[at]"$'\t'"${told[at]-}"
    done
    builtin compadd "$@"
}
telling() {
    # zsh forgets it each time.
    comppostfuncs=(ended)
    _main_complete
}
ended() { print -r -- $'\r>> end'; }
zle -C telling complete-word telling
print -r -- '>> ''ready'
