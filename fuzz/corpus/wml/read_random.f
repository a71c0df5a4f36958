# Random reads stay inside the working set, so every one is whole.
# expect: 50 reads of 4096 bytes: 204800 bytes; 1 open by the read.

set mode quit alldone

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=4k, workingset=16k, random, iters=50
    flowop finishoncount name=end, value=1
  }
}

run
