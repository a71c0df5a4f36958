# aiowrite queues random writes; every aiowait waits for half of what is outstanding, at least one.
# expect: 8 writes of 4096 bytes queued; after 4 waits (4, 2, 1, 1) all 8 have completed; the file keeps its 65536 bytes.

set mode quit alldone

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop aiowrite name=aio1, filename=data, iosize=4k, random, iters=8
    flowop aiowait name=wait1, iters=4
    flowop finishoncount name=end, value=1
  }
}

run
