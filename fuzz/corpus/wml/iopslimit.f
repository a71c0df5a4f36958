# iopslimit takes as many events as reads and writes were done since its last call; other operations are free.
# expect: at 50 events a second about 100 reads in 2 s: 70 to 115; as many stats beside them.

set mode quit timeout
eventgen rate=50

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=1k, random
    flowop statfile name=stat1, filename=data
    flowop iopslimit name=limit1
  }
}

run 2
