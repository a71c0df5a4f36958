# openfile into a slot that is open is an error.
# expect: the run fails (exit 1) and names the flowop second.

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=first, filesetname=data, fd=1
    flowop openfile name=second, filesetname=data, fd=1
  }
}

run 5
