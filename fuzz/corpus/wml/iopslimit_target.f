# iopslimit with a target takes events for the operations of that name only.
# expect: at 50 events a second about 100 rounds in 2 s, of one read that is charged and two that are not: 70 to 115 and 140 to 230.

set mode quit timeout
eventgen rate=50

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=charged, filename=data, iosize=1k, random
    flowop read name=free, filename=data, iosize=1k, random, iters=2
    flowop iopslimit name=limit1, target=charged
  }
}

run 2
