# A sequential read that finds the end of the file counts, with 0 bytes, and goes back to the start.
# expect: of 10000 bytes in pieces of 4096: 4096, 4096, 1808, 0, and again; 8 reads of 20000 bytes; 1 open by the read.

set mode quit alldone

define file name=data, path=/tmp, size=10000, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=4k, iters=8
    flowop finishoncount name=end, value=1
  }
}

run
