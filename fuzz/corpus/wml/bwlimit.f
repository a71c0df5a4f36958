# bwlimit takes one event per MiB read or written since its last call.
# expect: at 8 events a second about 16 MiB in 2 s, 64 reads of 256 KiB: 44 to 80.

set mode quit timeout
eventgen rate=8

define file name=data, path=/tmp, size=1m, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=256k, random
    flowop bwlimit name=limit1
  }
}

run 2
