# openfile opens the files of a writeonly fileset for writing only.
# expect: the read fails (exit 1) and is named read1.

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=100, prealloc=100, writeonly

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop read name=read1, fd=1, iosize=10
  }
}

run 5
