outlive run --name build -- sh -c 'echo compiling; sleep 1; exit 3'
outlive run --name web -- sh -c 'setsid sleep 99 & sleep 99'
outlive ls
outlive wait build; echo "it ended with $?"
outlive logs build
outlive stop web   # the whole tree, what has daemonized too
outlive ls --all
