# closefile of a slot that is closed is an error.
# expect: the run fails (exit 1) and names the flowop again.

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop closefile name=close1, fd=1
    flowop closefile name=again, fd=1
  }
}

run 5
