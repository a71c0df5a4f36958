# openfile opens the files of a readonly fileset for reading only.
# expect: the append fails (exit 1) and is named append1.

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=100, prealloc=100, readonly

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop appendfile name=append1, fd=1, iosize=10
  }
}

run 5
