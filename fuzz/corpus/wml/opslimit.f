# opslimit takes as many events as operations were done since its last call.
# expect: at 100 events a second 50 rounds of four operations in 2 s: 35 to 58 of each.

set mode quit timeout
eventgen rate=100

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filename=data, fd=1
    flowop statfile name=stat1, filename=data
    flowop read name=read1, fd=1, iosize=1k
    flowop closefile name=close1, fd=1
    flowop opslimit name=limit1
  }
}

run 2
