# Ends a throw-away cluster and removes its directory ($1) once standard input ends: when whoever started it is done with it,
# or is gone, in whatever way.
while read -r _; do :; done

# Every process of the cluster works in its data directory, or above it while that is made; a process id in a file might be
# somebody else's by now.
ours() {
  for proc in /proc/[0-9]*; do
    case "$(readlink "$proc/cwd" 2>/dev/null)" in
      "$1" | "$1/data") echo "${proc#/proc/}" ;;
    esac
  done
}

# An immediate stop: it gives back what the kernel keeps beyond a process. One that was stopped has to be woken for it.
for signal in QUIT CONT; do
  for pid in $(ours "$1"); do kill "-$signal" "$pid" 2>/dev/null; done
done
looks=0
while [ -n "$(ours "$1")" ] && [ "$looks" -lt 100 ]; do
  looks=$((looks + 1))
  sleep 0.05
done
for pid in $(ours "$1"); do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$1"
