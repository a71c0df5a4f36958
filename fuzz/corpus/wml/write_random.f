# Random writes stay inside the file.
# expect: 50 writes of 4096 bytes, 204800 bytes in all; the file keeps its 65536 bytes.

set mode quit alldone

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop write name=write1, filename=data, iosize=4k, random, dsync, iters=50
    flowop finishoncount name=end, value=1
  }
}

run
